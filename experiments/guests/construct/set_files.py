"""Write the files of a constructed set: its benchmark, items, card and report."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from ragbed.documents.types import Document, digest
from ragbed.experiments.analysis.view import View, format_value
from ragbed.experiments.benchmarks.hub import CARD
from ragbed.experiments.formatting import estimate, plural, visible
from ragbed.experiments.guests.construct.export_formats import collect_items, write_exports
from ragbed.experiments.guests.construct.llm import WRITER
from ragbed.experiments.guests.construct.stages import Outcome
from ragbed.experiments.guests.hard_negatives.guard_recall import guard_recall
from ragbed.experiments.guests.review.figures import read_figures, review_section
from ragbed.experiments.guests.review.items import DOCUMENTS, FILE, ITEMS, QUESTIONS, Item, open_set, question_line
from ragbed.experiments.question import Question
from ragbed.experiments.report.page import policy
from ragbed.experiments.runs.store import write_text
from ragbed.retrieval.storage.files import sha256_of

if TYPE_CHECKING:
    from ragbed.experiments.guests.construct.set_builder import Built

_FAMILIES = ("qwen", "llama", "gemma", "mistral", "mixtral", "phi", "gpt", "claude", "gemini", "smollm", "deepseek",
             "command", "granite", "glm", "exaone", "solar", "kimi")
_MAX_REASONS = 3  # reasons shown for each step
_NONE = "no instance was made from it"


def make_card(built: Built) -> dict[str, Any]:
    """Return the card of a construction as JSON: models, yield, sources, measurements, notes and tags."""
    settings, construction = built.settings, built.construction
    kept = construction.kept
    names = sorted({name for item in kept for name in item.measured})
    tags = {name: dict(sorted(Counter(item.tags[name] for item in kept if name in item.tags).items()))
            for name in sorted({name for item in kept for name in item.tags})}
    return {
        "kind": settings.kind, "paper": settings.definition.paper, "ragbed": version("ragbed"),
        "licence": settings.licence, "settings": settings.content_settings, "models": _model_rows(built),
        "yield": construction.yield_counts(), "sources": list(_source_rows(built)), "unread": list(built.unread),
        "measured": {name: {"mean": round(fmean(values), 6), "n": len(values)} for name in names
                     if (values := [item.measured[name] for item in kept if name in item.measured])},
        "notes": list(settings.definition.notes(construction.played, built.library)),
        "unanswerable": sum(not item.answerable for item in kept), "guard": _guard_figures(built),
        "tags": {name: values for name, values in tags.items() if len(values) <= 20}}


def _guard_figures(built: Built) -> dict[str, Any] | None:
    """Return the guard's recall if some items are unanswerable, or None."""
    kept = built.construction.kept
    if all(item.answerable for item in kept):
        return None
    questions = [Question(item.id, item.question, item.answers, True) for item in kept]
    recall = guard_recall(questions, built.library.guarded_index, built.library.rng("recall"))
    return {"recall": recall.share, "ways": {way: list(counts) for way, counts in recall.ways.items()}}


def model_family(name: str) -> str:
    """Return the family in a model's name, or the name itself."""
    plain = name.lower()
    return next((one for one in _FAMILIES if one in plain), plain)


def _model_rows(built: Built) -> list[dict[str, str]]:
    roles = built.settings.roles
    writer = roles.get("writer", "")
    return [{"role": role, "model": name, "identity": built.models[role],
             "relation": "" if role == "writer" or not writer else
             "the writer itself" if built.models[role] == built.models["writer"] else
             "of the writer's family" if model_family(name) == model_family(writer) else ""}
            for role, name in roles.items()]


def _source_rows(built: Built) -> Iterator[dict[str, Any]]:
    by_document: dict[str, list[Outcome]] = {}
    for one in built.construction.played:
        by_document.setdefault(one.item.document, []).append(one)
    for document in sorted(built.library.documents.values(), key=lambda one: one.source):
        played = by_document.get(document.id, [])
        lost = Counter(one.lost for one in played if one.lost)
        yield {"source": document.source, "hash": digest(document.html, document.plain),
               "characters": len(document.plain), "generated": sum(one.generated for one in played),
               "kept": sum(not one.lost for one in played), "lost": dict(sorted(lost.items())),
               "why": "" if played else "it holds no text" if not document.plain.strip() else _NONE}


def yield_view(card: Mapping[str, Any]) -> View:
    """Return the yield table: items requested, instances started, and items generated, lost at each step, and kept."""
    found = card["yield"]
    started = plural(found["instances"], "instance")
    why = f"the limit is {started}; allow more with --tries"
    if found["instances"] < found["tries"]:
        why = f"the sources give {started}; add documents"
    lost = [(f"lost: {name}", sum(reasons.values()), _top_reasons(reasons)) for name, reasons in found["lost"].items()]
    missing = found["asked_for"] - found["kept"]
    return View("yield", "Yield", ("step", "items", "why"), (
        ("asked for", found["asked_for"], ""), ("instances started", found["instances"], ""),
        ("generated", found["generated"], ""), *lost, ("kept", found["kept"], ""),
        *([("missing", missing, why)] if missing else [])), main=1)


def _top_reasons(reasons: Mapping[str, int]) -> str:
    most = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    text = "; ".join(f"{why} ({count})" for why, count in most[:_MAX_REASONS])
    return visible(text + (f"; {len(most) - _MAX_REASONS} other reasons" if len(most) > _MAX_REASONS else ""))


def sources_view(card: Mapping[str, Any]) -> View:
    """Return a table of the sources: how many items each gave, and where the others were lost."""
    rows = tuple((visible(one["source"]), one["characters"], one["generated"], one["kept"],
                  one["why"] or ", ".join(f"{name} {count}" for name, count in one["lost"].items()))
                 for one in card["sources"])
    return View("sources", "Sources", ("source", "characters", "generated", "kept", "lost at"), rows, main=3)


def render_card(card: Mapping[str, Any]) -> str:
    """Return the card as Markdown."""
    found, measured = card["yield"], card["measured"]
    lines = [f"# {card['kind']}: a constructed set", "",
             f"{found['kept']} of {plural(found['asked_for'], 'item')} asked for, {card['unanswerable']} of them "
             f"unanswerable. Built by ragbed {card['ragbed']}, following {card['paper']}.", "",
             f"Licence of the sources: {visible(card['licence']) or 'not stated; give it with --licence'}.", "",
             "## Models", "", *_table(("role", "model", "identity", ""), [
                 (one["role"], one["model"], one["identity"], one["relation"]) for one in card["models"]]
                                      or [("none", "", "", "")])]
    for view in (yield_view(card), sources_view(card)):
        lines += ["", f"## {view.title}", "", *_table(view.header, view.rows)]
    lines += [f"- not read: {visible(one)}" for one in card["unread"]] + [f"- {one}" for one in card["notes"]]
    if measured:
        lines += ["", "## Measured by solvers", "", *_table(("figure", "mean", "n"), [
            (name, f"{one['mean']:.2f}", one["n"]) for name, one in measured.items()])]
    if card.get("guard"):
        share = card["guard"]["recall"]
        lines += ["", "## Certificates", "",
                  "The guard finds no answer to an unanswerable item in the index. Its recall, measured with "
                  f"{share['n']} answers planted in chunks of the index, is "
                  f"{estimate(share['mean'], share['low'], share['high'])}.", "",
                  *_table(("form of the answer", "found", "planted"), [(way, *counts) for way, counts
                                                                       in card["guard"]["ways"].items()])]
    for name, values in card["tags"].items():
        lines += ["", f"## By {name}", "", *_table((name, "items"), list(values.items()))]
    if card.get("review"):
        lines += ["", review_section(card["review"])]
    lines += ["", "## Settings", "", "```json", json.dumps(card["settings"], indent=1, ensure_ascii=False), "```"]
    if card.get("files"):
        lines += ["", "## Files", "", *_table(("file", "SHA-256"), list(card["files"].items()))]
    return "\n".join([*lines, ""])


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    def line(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(visible(str(cell)).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
                                 for cell in cells) + " |"

    return [line(header), "|" + "---|" * len(header), *map(line, rows)]


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write card.json and card.md."""
    write_text(folder / CARD, json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    write_text(folder / "card.md", render_card(card))


def hash_files(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of files by path, including those in the named folders."""
    files = sorted(file for name in names for file in (
        (folder / name).rglob("*") if (folder / name).is_dir() else [folder / name]) if file.is_file())
    return {file.relative_to(folder).as_posix(): sha256_of(file) for file in files}


REPORT = "report.html"
_MAX_SHOWN = 1_000  # kept items in the report, and lost items; items.jsonl has all
_ITEM, _DOCUMENT = TypeAdapter(Item), TypeAdapter(Document)


def write_set(built: Built) -> Mapping[str, Any]:
    """Write the set of a finished construction, and return its card. The same calls give the same bytes.

    Writes the paper's own format to KIND/, questions.jsonl, other requested formats, all items with their outcomes, the
    documents of kept items, the card and the report."""
    settings, construction = built.settings, built.construction
    folder = settings.out / settings.kind
    folder.mkdir(parents=True, exist_ok=True)
    settings.definition.write(construction.kept, built.library, folder)
    write_text(settings.out / QUESTIONS, "".join(_json(question_line(item, built.library.documents))
                                                 for item in construction.kept))
    if settings.exports:
        made = collect_items(construction.kept, built.library, settings.kind, built.models.get(WRITER, ""))
        write_exports(made, settings.exports, settings.out)
    write_text(settings.out / ITEMS, "".join(map(_item_line, construction.played)))
    named = {id for item in construction.kept for id in (
        *(one.document for one in item.evidence), *(chunk.document for chunk in item.chunks))}
    every = {**built.library.documents, **{one.id: one for item in construction.kept for one in item.documents}}
    write_text(settings.out / DOCUMENTS, "".join(_json(_DOCUMENT.dump_python(document, mode="json"))
                                                 for document in every.values() if document.id in named))
    written = hash_files(settings.out, [settings.kind, QUESTIONS, ITEMS, DOCUMENTS, *settings.exports])
    card: dict[str, Any] = {**make_card(built), "files": written}
    if construction.kept and (settings.out / FILE).is_file():
        card["review"], _ = read_figures(open_set(str(settings.out)))
    write_card(settings.out, card)
    write_text(settings.out / REPORT, _render_report(card, construction.played))
    return card


def _item_line(played: Outcome) -> str:
    return _json({"item": _ITEM.dump_python(played.item, mode="json"), "lost": played.lost, "why": played.why,
                  "calls": [list(call) for call in played.calls]})


def _json(fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True) + "\n"


def _render_report(card: Mapping[str, Any], played: Sequence[Outcome]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("ragbed.experiments.guests.construct", "assets"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = visible
    style = "\n".join(files(package).joinpath("assets", name).read_text("utf-8") for package, name in (
        ("ragbed.experiments.report", "page.css"), ("ragbed.experiments.report", "tables.css"),
        ("ragbed.experiments.guests.construct", "report.css")))
    kept = [one for one in played if not one.lost]
    lost = [one for one in played if one.lost]
    steps, sources = yield_view(card).rows, sources_view(card)
    most = max(1, *(row[1] for row in steps if isinstance(row[1], int)))
    return environment.get_template("report.html.j2").render(
        card=card, style=style, policy=policy([], [style]), found=card["yield"], most=most, steps=steps,
        sources=(sources.header, [[format_value(sources, name, value) for name, value in zip(
            sources.header, row, strict=True)] for row in sources.rows]),
        lists=[("Kept", kept[:_MAX_SHOWN], len(kept)), ("Lost", lost[:_MAX_SHOWN], len(lost))])
