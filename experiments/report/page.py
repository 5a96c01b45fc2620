"""The page: data into templates, and a content security policy that fits exactly what the page holds.

From a run's folder to its report.
"""
from __future__ import annotations

import base64
import hashlib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from documents.errors import RunError
from experiments.analysis.cases import causes_of
from experiments.record import Result
from experiments.report.cells import table
from experiments.report.overview import overview
from experiments.report.questions import browse
from experiments.report.store import BUDGET
from experiments.report.text import ReportInput, pieces, to_questions, visible
from experiments.runs.finished import Finished, no_collections
from experiments.words import two
from retrieval.storage.files import why_unwritten, write_atomically


def report_run(run: Finished) -> Path:
    """Write `report.html` of a finished run.

    Raises:
        RunError: the file cannot be written.
        SettingsError: the run's settings cannot be read.
    """
    path = run.path / "report.html"
    try:
        with no_collections():
            write_report(_input(run), path)
    except OSError as error:
        raise RunError(f"{path}: {why_unwritten(error)}") from error
    return path


def _input(run: Finished) -> ReportInput:
    return ReportInput(run.name, dict(run.summary), run.questions, run.folder.records(traces=True),
                       run.folder.database.text, run.scheme.rights,
                       lambda results: causes_of(run.cells, results, run.questions, run.scheme, run.settings.scoring),
                       _facts(run))


def _facts(run: Finished) -> list[tuple[str, str]]:
    """Which questions of the benchmark were asked, what was drawn by, and which ragbed writes this."""
    chosen = run.settings.benchmark
    found = {"sample": f"{chosen.sample} (seed {chosen.seed})" if chosen.sample else None, "limit": chosen.limit,
             "filter": ", ".join(f"{name} {value}" for name, value in chosen.filter.items()) or None,
             "seed": run.summary["seed"], "ragbed": version("ragbed")}
    return [(name, visible(str(value))) for name, value in found.items() if value is not None]


# In the order in which they use each other.
SCRIPTS = ("unpack.js", "dom.js", "focus.js", "data.js", "search.js", "filter.js", "state.js", "list.js", "question.js",
           "answers.js", "evidence.js", "trace.js", "browse.js", "print.js")
STYLES = ("page.css", "tables.css", "charts.css", "questions.css", "answers.css")


def write_report(view: ReportInput, path: Path, budget: int = BUDGET) -> None:
    """Write the report to `path`, atomically: a reader sees the old file or the new one, never half.

    Args:
        budget: characters of packed texts in the page; what a larger run has beyond them is left out, and said to be:
            prompts first, then traces, then passages.
    """
    write_atomically(path, render(view, budget).encode("utf-8", "replace"))


def render(view: ReportInput, budget: int = BUDGET) -> str:
    """The whole page. Equal input gives equal bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("experiments.report", "assets"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["pieces"] = pieces
    environment.filters["two"] = two
    environment.globals["to_questions"] = to_questions
    return environment.get_template("page.html.j2").render(_context(view, budget))


def _context(view: ReportInput, budget: int) -> dict[str, Any]:
    cells = table(view.summary.get("cells") or (), view.summary.get("columns") or ())
    results: list[Result] = []
    browser = browse(view, cells.cells, results, budget)
    return {
        **overview(view, cells, results),
        "name": visible(view.name), "run": visible(str(view.summary.get("run") or "")), "browser": browser,
        "notes": [visible(str(note)) for note in view.summary.get("notes") or ()], **_assets(),
    }


def _assets() -> dict[str, str]:
    """Script and style with the policy that admits these and nothing else."""
    folder = files("experiments.report").joinpath("assets")
    script = "\n".join(folder.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    style = "\n".join(folder.joinpath(name).read_text("utf-8") for name in STYLES)
    return {"script": script, "style": style, "policy": policy([script], [style])}


def policy(scripts: list[str], styles: list[str]) -> str:
    """Nothing may be loaded or sent; only the named scripts and styles run."""
    return (f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; "
            "base-uri 'none'; form-action 'none'")


def _hashes(texts: list[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)
