"""Write the leaderboard as one HTML page and one JSON file. The page loads nothing, and works without JavaScript."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from ragbed.documents.errors import RunError
from ragbed.experiments.cells import describe_factors, label_rows
from ragbed.experiments.formatting import metric_title, visible
from ragbed.experiments.guests.leaderboard.submission_checks import Reference, Verdict
from ragbed.experiments.report.cell_table import FAILED, Figure
from ragbed.experiments.report.page import policy
from ragbed.retrieval.storage.files import explain_write_error, write_atomically

_MAX_NAME = 200  # characters of a submission's name that the page shows


def board_json(verdicts: Sequence[Verdict], references: Sequence[Reference]) -> dict[str, Any]:
    """Return all tables and all refused submissions as JSON. In a table, the highest score comes first."""
    tables = []
    for place, one in enumerate(references):
        own = [verdict for verdict in verdicts if not verdict.reason and verdict.place == place]
        rows = sorted((row for verdict in own for row in _rows(verdict)), key=_order)
        metric = own[0].columns[0].split(" / ")[0] if own else ""
        tables.append({"benchmark": one.benchmark.name, "questions": len(one.benchmark.questions), "hash": one.hash,
                       "scoring": one.settings.scoring, "judge": one.settings.judge.name, "metric": metric,
                       "rows": rows})
    return {"ragbed": version("ragbed"), "tables": tables,
            "refused": [{"file": one.file, "reason": one.reason} for one in verdicts if one.reason]}


def _rows(verdict: Verdict) -> list[dict[str, Any]]:
    metric = verdict.columns[0].split(" / ")[0]
    return [{"submission": verdict.name, "file": verdict.file, "sha256": verdict.sha256, "results": verdict.results,
             "cell": label, "model": str(row["model"]),
             "strategy": describe_factors(row, ["retrieval", "reasoning"]) or str(row["reasoning"]),
             "condition": str(row["condition"]), "n": row["n"], "figure": row["metrics"].get(metric),
             "citation_f1": row["metrics"].get("citation_f1"),
             "failed": sum(count for name, count in row["outcomes"].items() if name in FAILED),
             "tokens": row["usage"]["prompt_tokens"] + row["usage"]["completion_tokens"]}
            for row, label in zip(verdict.rows, label_rows(verdict.rows), strict=True)]


def _order(row: Mapping[str, Any]) -> tuple[float, str, str]:
    mean = (row["figure"] or {}).get("mean")
    return (2.0 if mean is None else -mean, row["file"], row["cell"])


def write_board(board: Mapping[str, Any], out: Path, title: str) -> Path:
    """Write `index.html` and `leaderboard.json`, and return the page's path. Raises RunError if they cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / "leaderboard.json", (json.dumps(board, indent=2, ensure_ascii=True) + "\n").encode())
        write_atomically(out / "index.html", render(board, title).encode("utf-8", "replace"))
    except OSError as error:
        raise RunError(f"{out}: {explain_write_error(error)}") from error
    return out / "index.html"


def render(board: Mapping[str, Any], title: str) -> str:
    """Return the page; equal input gives equal bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    package = "ragbed.experiments.guests.leaderboard"
    own, report = files(package).joinpath("assets"), files("ragbed.experiments.report").joinpath("assets")
    style = "\n".join(one.read_text("utf-8") for one in (report / "page.css", report / "tables.css", own / "board.css"))
    script = (own / "filter.js").read_text("utf-8")
    environment = Environment(loader=PackageLoader(package, "assets"), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True)
    environment.filters["shown"] = lambda text: visible(str(text)[:_MAX_NAME]) + "…" * (len(str(text)) > _MAX_NAME)
    environment.filters["figure"] = Figure.of
    environment.filters["title_of"] = metric_title
    every = [row for table in board["tables"] for row in table["rows"]]
    filters = {name: sorted({row[name] for row in every}) for name in ("model", "strategy")}
    filters = {"benchmark": sorted({table["benchmark"] for table in board["tables"]}), **filters}
    return environment.get_template("board.html.j2").render(
        board=board, title=visible(title), filters=filters, style=style, script=script,
        policy=policy([script], [style]))
