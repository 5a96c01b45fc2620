"""Write the report page from templates, with a content security policy for exactly its scripts and styles."""
from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

from ragbed.agents.model_settings import NO_MODEL
from ragbed.documents.errors import RunError
from ragbed.experiments.analysis.causes import find_causes
from ragbed.experiments.analysis.view import View
from ragbed.experiments.formatting import column_title, fmt2, format_dollars, format_p, metric_title, visible
from ragbed.experiments.record import Result
from ragbed.experiments.report.cell_table import FAILED, table
from ragbed.experiments.report.charts import draw
from ragbed.experiments.report.layout import sections
from ragbed.experiments.report.packing import BUDGET, as_json
from ragbed.experiments.report.pareto import comparable_cells, cost_chart, cost_of, merge_replicates, pareto_front
from ragbed.experiments.report.questions import browse
from ragbed.experiments.report.report_input import ReportInput, pieces
from ragbed.experiments.report.summary_table import ranked_plot, summary_rows
from ragbed.experiments.report.summary_text import summary_text
from ragbed.experiments.runs.finished import Finished, pause_collection, read_trial
from ragbed.guests import loaded
from ragbed.retrieval.storage.files import explain_write_error, replacing_file, write_atomically

LARGEST = 100_000  # answers in a page; for a larger run, the page has a sample of the questions


def report_run(run: Finished, views: Sequence[View] = (), largest: int = LARGEST) -> Path:
    """Write `report.html` of a run, with further views, and `times.jsonl`, the duration of each answer.

    Equal results give equal bytes. If the run has more than `largest` answers, the page holds a random sample of its
    questions; the figures count all. Raises RunError if a file cannot be written.
    """
    path, folder = run.path / "report.html", run.folder
    ids, most = folder.question_ids(), max(largest // len(run.rows), 1)
    chosen = Random(run.seed).sample(ids, most) if len(ids) > most else None
    try:
        with replacing_file(run.path / "times.jsonl") as partial, partial.open("x", encoding="utf-8") as file:
            file.writelines(f"{as_json({'cell': cell, 'question': question, **timing.model_dump()})}\n"
                            for cell, question, timing in folder.timings())
        with pause_collection():
            questions = run.questions if chosen is None else folder.questions(chosen)
            correctness_metrics = tuple(run.summary["correctness_metrics"])
            said, tried = read_trial(run.path, run.rows[0]["judge"])
            more = (view for make in loaded("run_view").values() for view in make(run))
            shown = [*run.summary["views"], *tried, *(view.as_json() for view in (*views, *more))]
            write_report(ReportInput(
                run.name, {**run.summary, "views": shown, "notes": [*said, *run.summary["notes"]]},
                questions, folder.records(True, chosen),
                folder.database.text, correctness_metrics,
                lambda results: find_causes(run.cells, results, questions, correctness_metrics, run.scoring),
                (len(ids), run.seed) if chosen else None,
                [(outcome, kind) for kind, _, outcome in (folder.failures() if chosen else ())], _facts(run)), path)
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error
    return path


def _facts(run: Finished) -> list[tuple[str, str]]:
    """Return facts about the run: the selected questions of the benchmark, the seed, and the version of ragbed."""
    chosen = run.config.get("benchmark", {})
    sample, only = chosen.get("sample"), chosen.get("filter") or {}
    found = {"sample": f"{sample} (seed {chosen.get('seed')})" if sample else None, "limit": chosen.get("limit"),
             "filter": ", ".join(f"{name} {value}" for name, value in only.items()) or None,
             "seed": run.summary["seed"], "ragbed": version("ragbed")}
    return [(name, visible(str(value))) for name, value in found.items() if value is not None]


# Each script uses the ones before it.
SCRIPTS = ("unpack.js", "dom.js", "focus.js", "data.js", "search.js", "filter.js", "state.js", "list.js", "question.js",
           "answers.js", "evidence.js", "trace.js", "browse.js", "print.js")
_AFTER = ("Comparisons", "Breakdowns", "Published figures")  # sections after the other figures
STYLES = ("page.css", "tables.css", "charts.css", "questions.css", "answers.css")


def write_report(view: ReportInput, path: Path, budget: int = BUDGET) -> None:
    """Write the report to `path`, atomically; see `render`."""
    write_atomically(path, render(view, budget).encode("utf-8", "replace"))


def render(view: ReportInput, budget: int = BUDGET) -> str:
    """Return the whole page; equal input gives equal bytes.

    Beyond the budget, in characters of packed texts, prompts are left out first, then traces, then passages.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("ragbed.experiments.report", "assets"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["pieces"] = pieces
    environment.filters["two"] = fmt2
    environment.filters["money"] = format_dollars
    environment.filters["signed"] = lambda value: f"{value:+z.2f}"
    environment.filters["p_words"] = format_p
    return environment.get_template("page.html.j2").render(_context(view, budget))


def _context(view: ReportInput, budget: int) -> dict[str, Any]:
    folder = files("ragbed.experiments.report").joinpath("assets")
    script, style = ("\n".join(folder.joinpath(name).read_text("utf-8") for name in names)
                     for names in (SCRIPTS, STYLES))
    summary = view.summary
    cells = table(summary.get("cells") or (), summary.get("columns") or ())
    results: list[Result] = []
    browser = browse(view, cells.cells, results, budget)
    kinds = Counter(kind for outcome, kind in (view.failures if view.sample else [
        (one.outcome, one.failure.kind) for one in results if one.failure is not None]) if outcome in FAILED)
    whole = merge_replicates(cells, summary.get("repeated") or ())
    cost = cost_of(whole.cells)
    merged = len(whole.cells) < len(cells.cells)
    shown = sections(summary.get("views") or (), cells, whole, bool(view.correctness_metrics) and not merged)
    progress = summary.get("progress") or {"said": (), "unequal": False}
    unequal = progress["unequal"]  # the cells answered different questions, so their means are not ranked
    chart = None if unequal else cost_chart(whole, cost)
    asked = not unequal and (not cells.cells or any(cell.factors.get("model") != NO_MODEL for cell in cells.cells))
    before = [one for one in shown if one.title not in _AFTER]
    after = [one for one in shown if one.title in _AFTER]
    return {
        "table": cells, "rest": cells.columns if merged else [
            column for column in cells.columns if column.joined or column.parts[0] not in (
                *cells.judges, "citation_f1")],
        "front": {id for cell in pareto_front(comparable_cells(whole), cost) for id in cell.ids if not unequal},
        "unfinished": [visible(text) for text in progress["said"]],
        "before": before, "after": after, "sentences": summary_text(summary, whole, kinds), "asked": asked,
        "ranked": ranked_plot(summary_rows(summary, whole), whole, not unequal),
        "first": whole.cells[0] if whole.cells else None,
        "plot": None if chart is None else draw(chart, whole, {
            id: cell.number for cell in whole.cells for id in cell.ids}),
        "right": ", or else ".join(metric_title(name) for name in view.correctness_metrics),
        "headline": cells.quality == "right" or list(view.correctness_metrics) in (
            [], [cells.quality]), "facts": (*cells.shared, *view.facts),
        "quality": column_title(cells.judges[0]) if len(cells.judges) == 1 else metric_title(cells.quality),
        "links": [("summary", "Summary"), *([("plot", "Cost and quality")] if asked and chart else []),
                  *((one.anchor, one.title) for one in before), ("figures", "More figures"),
                  *((one.anchor, one.title) for one in after), ("questions", "Questions")],
        "name": visible(view.name), "run": visible(str(summary.get("run") or "")), "browser": browser,
        "sample": view.sample, "count": view.sample[0] if view.sample else browser.count,
        "notes": [visible(str(note)) for note in summary.get("notes") or ()],
        "script": script, "style": style, "policy": policy([script], [style]),
    }


def policy(scripts: list[str], styles: list[str]) -> str:
    """Return a content security policy: nothing is loaded or sent, and only these scripts and styles run."""
    return (f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; "
            "base-uri 'none'; form-action 'none'")


def _hashes(texts: list[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)
