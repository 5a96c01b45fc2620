"""`ragbed index`."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from experiments.commands.options import AsJson

if TYPE_CHECKING:
    from retrieval.settings import IndexSettings


def index(sources: Annotated[list[str], typer.Argument(help="Files, folders or globs of HTML, PDF, text, Markdown.")],
          out: Annotated[Path, typer.Option("--out", help="The index folder.")],
          chunker: Annotated[str | None, typer.Option(help="How documents are cut, such as `sections`.")] = None,
          size: Annotated[int | None, typer.Option(min=100, help="Chunk size in characters.")] = None,
          format: Annotated[str, typer.Option(help="The rendering that is indexed: `plain` or `html`.")] = "plain",
          embedder: Annotated[str | None, typer.Option(help="A sentence-transformers model: name or folder.")] = None,
          json: AsJson = False) -> None:
    """Parse, chunk, embed and index documents; run again after a change, only what changed is done."""
    from experiments.terminal.display import Bars, note, print_json, say
    from retrieval.build import build_index

    settings, before = _settings(chunker, size, format, embedder), _settings_of(out)
    with Bars() as bars:
        report = build_index(sources, out, settings, progress=bars)
    if before not in (None, settings):
        note("the index that stood here was made with other settings; options are not remembered, so give them again")
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


def _settings_of(out: Path) -> IndexSettings | None:
    """What the index that stands there was made with; None where there is none that can be read."""
    from documents.errors import IndexFolderError
    from retrieval.manifest import read_manifest

    try:
        return read_manifest(out).settings
    except (IndexFolderError, OSError):
        return None


def _settings(chunker: str | None, size: int | None, format: str, embedder: str | None) -> IndexSettings:
    from pydantic import ValidationError

    from documents.errors import SettingsError
    from experiments.settings.file import explain
    from retrieval.settings import IndexSettings

    usual = IndexSettings()
    given: dict[str, Any] = {"formats": (format,), "embedder": embedder or usual.embedder}
    if size is not None or chunker not in (None, usual.chunker.kind):
        kind = chunker or usual.chunker.kind
        given["chunker"] = {"kind": kind, **({} if size is None else _sizes(kind, size))}
    try:
        return IndexSettings(**given)
    except ValidationError as error:
        raise SettingsError(explain(error.errors(include_url=False)[0], IndexSettings)) from error


def _sizes(kind: str, size: int) -> dict[str, int]:
    """The settings of that chunker that stand for one size."""
    from documents.chunkers import ChunkerSettings
    from documents.errors import SettingsError

    chunkers = {one.model_fields["kind"].default: one.model_fields for one in get_args(get_args(ChunkerSettings)[0])}
    fields = chunkers.get(kind, {"size": None})
    if "size" in fields:
        return {"size": size}
    if "target" in fields:
        return {"target": size, "largest": size * 5 // 4}
    raise SettingsError(f"--size does not go with --chunker {kind}, which has no one size")
