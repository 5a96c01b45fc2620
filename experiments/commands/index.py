"""`ragbed index`."""
from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import AsJson


class ChunkerName(StrEnum):
    """Chunkers by the `kind` of their settings."""

    sections = "sections"
    fixed = "fixed"
    crest = "crest"


class FormatName(StrEnum):
    """The renderings of a document."""

    plain = "plain"
    html = "html"


def index(sources: Annotated[list[str], typer.Argument(help="Files, folders or globs of HTML, PDF, text, Markdown.")],
          out: Annotated[Path, typer.Option("--out", help="The index folder.")],
          chunker: Annotated[ChunkerName | None, typer.Option(help="How documents are cut.")] = None,
          size: Annotated[int | None, typer.Option(min=100, help="Chunk size in characters.")] = None,
          format: Annotated[FormatName, typer.Option(help="The rendering that is indexed.")] = FormatName.plain,
          embedder: Annotated[str | None, typer.Option(help="A sentence-transformers model: name or folder.")] = None,
          json: AsJson = False) -> None:
    """Parse, chunk, embed and index documents; run again after a change, only what changed is done."""
    from experiments.display import Bars, note, print_json, say
    from retrieval.build import build_index

    settings = _settings(chunker, size, format, embedder)
    with Bars() as bars:
        report = build_index(sources, out, settings, progress=bars)
    for skipped in report.skipped:
        note(f"skipped {skipped}")
    if json:
        print_json({"index": str(out), "documents": report.documents, "parsed": report.parsed,
                    "chunks": report.chunks, "windows": report.windows, "embedded": report.embedded_now,
                    "reused": report.reused, "search": report.how, "seconds": report.seconds,
                    "skipped": [{"document": one.source, "reason": one.reason} for one in report.skipped]})
        return
    say(f"{report.documents} documents, {report.chunks} chunks, {report.windows} windows "
        f"({report.embedded_now} embedded now, {report.reused} known), {len(report.skipped)} skipped; "
        f"{sum(report.seconds.values()):.1f} s")
    say(f"{report.how}; {out}")


def _settings(chunker: ChunkerName | None, size: int | None, format: FormatName, embedder: str | None) -> Any:
    from documents.chunkers import Crest, Fixed, Sections
    from documents.errors import SettingsError
    from retrieval.settings import IndexSettings

    given: dict[str, Any] = {"formats": (format.value,)}
    if embedder:
        given["embedder"] = embedder
    if chunker is ChunkerName.crest:
        if size is not None:
            raise SettingsError("--size does not go with --chunker crest, whose sizes are random")
        given["chunker"] = Crest()
    elif chunker is ChunkerName.fixed:
        given["chunker"] = Fixed(size=size) if size else Fixed()
    elif size:
        given["chunker"] = Sections(target=size, largest=size * 5 // 4)
    return IndexSettings(**given)
