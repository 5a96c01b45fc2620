"""The page: data into templates, and a content security policy that fits exactly what the page holds."""
from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from experiments.report.breakdowns import breakdowns
from experiments.report.cells import table
from experiments.report.papers import papers
from experiments.report.plot import plot
from experiments.report.questions import entries
from experiments.report.store import TextStore, pack
from experiments.report.text import pieces, visible
from experiments.report.verdicts import verdicts
from experiments.report.view import ReportInput
from retrieval.files import write_atomically

SCRIPTS = ("unpack.js", "plot.js", "texts.js", "browse.js")
STYLES = ("page.css", "tables.css", "questions.css")


def write_report(view: ReportInput, path: Path) -> None:
    """Write the report to `path`, atomically: a reader sees the old file or the new one, never half."""
    write_atomically(path, render(view).encode("utf-8", "replace"))


def render(view: ReportInput) -> str:
    """The whole page. Equal input gives equal bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("experiments.report", "assets"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["pieces"] = pieces
    return environment.get_template("page.html.j2").render(_context(view))


def _context(view: ReportInput) -> dict[str, Any]:
    store = TextStore(view.text)
    cells = table(view.summary.get("cells") or (), view.summary.get("columns") or ())
    records = list(view.records)
    asked = list(entries(view.questions, records, cells.cells, store))
    figure = plot(cells)
    return {
        "name": visible(view.name), "run": visible(str(view.summary.get("run") or "")), "table": cells,
        "notes": [visible(str(note)) for note in view.summary.get("notes") or ()],
        "verdicts": verdicts(cells, [record.result for record in records]), "entries": asked,
        "breakdowns": breakdowns(view.summary.get("views") or ()),
        "papers": papers(view, cells.cells, [record.result for record in records]),
        "outcomes": _kinds(card.outcome for entry in asked for card in entry.cards),
        "grades": _kinds(card.grade for entry in asked for card in entry.cards),
        "blocks": store.finish(), "omitted": store.omitted, **_assets(figure),
    }


def _kinds(words: Iterable[str]) -> list[str]:
    return sorted({word for word in words if word})


def _assets(figure: str | None) -> dict[str, Any]:
    """Scripts and styles with the policy that admits these and nothing else.

    Plotly adds a style sheet for maps unless an element of its id is there; the page has one, so that the
    policy need not admit 80 KB of styles that no plot here uses.
    """
    folder = files("experiments.report").joinpath("assets")
    script = "\n".join(folder.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    style = "\n".join(folder.joinpath(name).read_text("utf-8") for name in STYLES)
    library = _plotly() if figure else ""
    scripts = [script, library] if library else [script]
    return {"script": script, "style": style, "figure": for_script(json.loads(figure)) if figure else "",
            "style_ids": re.findall(r'if\(!document\.getElementById\("([0-9a-f]{64})"\)\)', library),
        "library": pack(library) if library else "", "policy": policy(scripts, [style])}


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("\r\n", "\n")


def policy(scripts: list[str], styles: list[str]) -> str:
    """Nothing may be loaded or sent; only the named scripts and styles run.

    The empty style is Plotly's: it adds one to the page and fills it through the CSSOM.
    """
    return (f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes([*styles, ''])}; "
            "base-uri 'none'; form-action 'none'")


def _hashes(texts: list[str]) -> str:
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts)


def for_script(data: Mapping[str, Any]) -> str:
    """JSON that no text can break out of: `<`, `>` and `&` are written as escapes."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
