"""`ragbed index`."""
from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from ragbed.experiments.commands.options import AsJson, Launcher, ShardName, part_of, refuse

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard
    from ragbed.retrieval.build import BuildEstimate, BuildReport
    from ragbed.retrieval.index_settings import IndexSettings

Sources = Annotated[list[str] | None, typer.Argument(help=(
    "Files, folders or globs; with --remove, names in the index."))]
_NAMED = 20  # pages or sources in one message
_MAX_NAMED = 5  # this many files of unknown type are named; others are only counted

Chunker = Annotated[str | None, typer.Option("--chunker", metavar="NAME", help=(
    "Chunker: sections, sentences, recursive, fixed or crest; or YAML."))]
EmbedderText = Annotated[str | None, typer.Option("--embedder", metavar="NAME", help=(
    "Embedding model: name, folder, static:FOLDER, openai:NAME or none."))]
Vectors = Annotated[str | None, typer.Option("--vectors", metavar="NAME", help=(
    "Vector index: auto, flat, rabitq or hnsw; or YAML."))]
Rendering = Annotated[str | None, typer.Option("--format", metavar="NAME", help=(
    "Text to index: plain (default) or html."))]
Fields = Annotated[Path | None, typer.Option("--metadata", metavar="FILE", help=(
    "JSON Lines or CSV with a `source` column and fields to filter by."))]
Ocr = Annotated[bool, typer.Option("--ocr", help="Read PDF pages that are pictures by text recognition.")]
Add = Annotated[bool, typer.Option("--add", help="Add to the index, or replace documents in it.")]
Remove = Annotated[bool, typer.Option("--remove", help="Remove these sources from the index.")]
Check = Annotated[bool, typer.Option("--check", help="Verify the hash of every byte of the index.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate time and size, and stop.")]


def index(sources: Sources = None, *, out: Annotated[Path, typer.Option("--out", help="Folder of the index.")],
          chunker: Chunker = None,
          size: Annotated[int | None, typer.Option("--size", min=100, help="Chunk size in characters.")] = None,
          format: Rendering = None,
          embedder: EmbedderText = None, vectors: Vectors = None,
          ocr: Ocr = False, metadata: Fields = None, add: Add = False, remove: Remove = False, check: Check = False,
          dry_run: DryRun = False, shard: ShardName = None, launcher: Launcher = None,
          json: AsJson = False) -> None:
    """Parse, chunk, embed and index documents.

    Reads HTML, PDF, Office, Markdown, e-mail, e-books, JSON, code and more file types. A rerun processes only the
    files that changed. --chunker, --embedder and --vectors also take YAML, such as '{kind: fixed, size: 800, overlap:
    80}'.
    """
    given = {"chunker": chunker, "size": size, "format": format, "embedder": embedder, "vectors": vectors,
             "ocr": ocr or None}
    modes = [name for name, on in (("--add", add), ("--remove", remove), ("--check", check)) if on]
    changes = [f"--{name}" for name, value in given.items() if value is not None]
    if len(modes) > 1:
        refuse(f"{modes[0]} and {modes[1]} cannot be combined; give one of them")
    if check and (dry_run or metadata):
        refuse(f"--check cannot be combined with {'--dry-run' if dry_run else '--metadata'}; give only --out")
    if not check and not sources:
        refuse("name the files, folders or globs to index")
    if modes and changes:
        refuse(f"{changes[0]} cannot be combined with {modes[0]}: the index keeps its settings; build it again to "
               "change them")
    whole = [*modes, *["--dry-run"] * dry_run]
    if launcher and whole:
        refuse(f"--launcher cannot be combined with {whole[0]}")
    part = part_of(shard, *whole, *["--launcher"] * bool(launcher))
    if remove and (metadata or dry_run):
        refuse(f"--remove cannot be combined with {'--metadata' if metadata else '--dry-run'}")
    if check:
        _check(out, sources or [], json)
    elif dry_run:
        _estimate(sources or [], out, None if add else _settings(given), json)
    elif launcher:
        _launch(launcher, out, json)
    else:
        _build(sources or [], out, None if modes else _settings(given), metadata, remove, json, part)


def _launch(launcher: str, out: Path, json: bool) -> None:
    from ragbed.experiments.commands.options import find_launcher
    from ragbed.experiments.terminal.display import Bars

    guest = find_launcher(launcher)
    folders = [shard.folder(out) for shard in guest.launch(sys.argv[1:], launcher, [out])]
    with Bars() as bars:
        report = guest.merge_indexes(folders, out, bars)
    show_built(report, out, {"shards": len(folders)} if json else None, noted=True)


def _check(out: Path, sources: list[str], json: bool) -> None:
    """Verify an index, and compare it with the sources if some are named."""
    from ragbed.experiments.terminal.display import note, print_result
    from ragbed.retrieval.build import outdated_sources
    from ragbed.retrieval.index import Index

    manifest = Index.open(out, verify=True).manifest
    outdated = outdated_sources(sources, out) if sources else {}
    for source, change in list(outdated.items())[:_NAMED]:
        note(f"{source}: {change} since the index was built")
    if len(outdated) > _NAMED:
        note(f"and {len(outdated) - _NAMED} more sources differ")
    unchanged = f"every file{' of the index' * bool(outdated)} is unchanged"
    print_result(json, {"index": str(out), "documents": manifest.documents, "chunks": manifest.chunks,
                        "windows": manifest.windows, "files": manifest.files, "outdated": outdated}, (
        f"{out}: {manifest.documents} documents, {manifest.chunks} chunks; {unchanged}"))


def _estimate(sources: list[str], out: Path, settings: IndexSettings | None, json: bool) -> None:
    """Estimate a build. Without settings, estimate an addition to the existing index."""
    from ragbed.experiments.terminal.display import note, print_json
    from ragbed.retrieval.build import estimate_index

    unread = _note_unread(sources)
    estimate = estimate_index(sources, out, settings, add=settings is None)
    note(estimate.line())
    if json:
        print_json({"index": str(out), "estimate": asdict(estimate), "unread": unread})


def _build(sources: list[str], out: Path, settings: IndexSettings | None, metadata: Path | None, remove: bool,
           json: bool, shard: Shard | None) -> None:
    """Build an index or a shard of it. Without settings, change the existing index."""
    from ragbed.experiments.terminal.display import Bars, note
    from ragbed.retrieval.build import add_to_index, build_index, remove_from_index
    from ragbed.retrieval.filters.metadata import read_metadata

    estimates: list[BuildEstimate] = []
    place = shard.folder(out) if shard else out
    unread = [] if remove else _note_unread(sources)

    def on_estimate(estimate: BuildEstimate) -> None:
        estimates.append(estimate)
        if estimate.sampled:
            note(estimate.line())

    fields = read_metadata(metadata) if metadata else None
    with Bars() as bars:
        report = remove_from_index(sources, out, bars) if remove else \
            build_index(sources, out, settings, bars, metadata=fields, on_estimate=on_estimate,
                        shard=shard) if settings else \
            add_to_index(sources, out, bars, metadata=fields, on_estimate=on_estimate)
    before = report.previous if settings else None
    if before and before.settings != settings:
        note("the previous index had different settings; options are not remembered, so repeat those that you need")
    if before and before.fields and metadata is None:
        note("the previous index had metadata; it is not remembered, so give --metadata again if you need it")
    more = {"unread": unread, "estimate": asdict(estimates[0]) if estimates else None}
    show_built(report, place, more if json else None)


def show_built(report: BuildReport, place: Path, more: Mapping[str, Any] | None, noted: bool = False) -> None:
    """Show the result of a build, as JSON if `more` fields are given, and skipped files unless they were `noted`
    before."""
    from ragbed.experiments.terminal.display import note, print_json, say

    for skipped in () if noted else report.skipped:
        note(f"skipped {skipped}")
    for source, pages in report.unread_pages.items():
        named = ", ".join(map(str, pages[:_NAMED]))
        named += f" and {len(pages) - _NAMED} more" if len(pages) > _NAMED else ""
        one = len(pages) == 1
        advice = "" if report.ocr_pages else f"; --ocr reads {'it' if one else 'them'}"
        note(f"{source}: page {named} is a picture without text, so it is not in the index{advice}" if one else
             f"{source}: pages {named} are pictures without text, so they are not in the index{advice}")
    if report.ocr_pages:
        count = sum(map(len, report.ocr_pages.values()))
        named = ", ".join(list(report.ocr_pages)[:_MAX_NAMED]) + ", ..." * (len(report.ocr_pages) > _MAX_NAMED)
        note(f"{count} {'page' if count == 1 else 'pages'} read by OCR ({named}); recognised text may have errors")
    if report.unknown_metadata:
        names = report.unknown_metadata
        note(f"metadata: {len(names)} of its sources {'is' if len(names) == 1 else 'are'} not in the index "
             f"({', '.join(names[:_MAX_NAMED])}{', ...' * (len(names) > _MAX_NAMED)})")
    if report.hidden:
        note(f"{report.hidden:,} hidden characters were left out; RAGBED_KEEP_HIDDEN=1 keeps them")
    if more is not None:
        print_json({"index": str(place), "documents": report.documents, "parsed": report.parsed,
                    "replaced": report.replaced, "removed": report.removed,
                    "chunks": report.chunks, "windows": report.windows, "embedded": report.embedded_now,
                    "reused": report.reused, "search": report.how, "seconds": report.seconds,
                    "skipped": [{"document": one.source, "reason": one.reason} for one in report.skipped],
                    "unread_pages": report.unread_pages, "ocr_pages": report.ocr_pages,
                    "unknown_metadata": report.unknown_metadata, **more})
        return
    changes = ((report.replaced, "replaced"), (report.removed, "removed"))
    changed = "".join(f", {count} {what}" for count, what in changes if count)
    windows = (f", {report.windows} windows ({report.embedded_now} embedded now, {report.reused} reused)"
               if report.embedded_now or report.reused else "")
    made = f"{report.documents} documents{changed}, {report.chunks} chunks{windows}"
    say(f"{made}, {len(report.skipped)} skipped; {sum(report.seconds.values()):.1f} s" if report.seconds else
        f"nothing has changed: {made}")
    say(f"{report.how}; {place}")


def _note_unread(sources: Sequence[str]) -> list[str]:
    """Note how many files have an unsupported type, before work that may find no other files."""
    from ragbed.documents.sources import unread_files
    from ragbed.experiments.terminal.display import note

    names = unread_files(sources)
    if names:
        kinds = Counter(PurePath(name).suffix.lower() or "without a suffix" for name in names)
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        more = ", ..." if len(names) > _MAX_NAMED else ""
        note(f"skipped unsupported files: {counted} ({', '.join(names[:_MAX_NAMED])}{more})")
    return names


def _settings(options: Mapping[str, Any]) -> IndexSettings:
    from pydantic import ValidationError

    from ragbed.documents.errors import MissingExtra, SettingsError
    from ragbed.experiments.settings.texts import parse_yaml
    from ragbed.experiments.settings.validation import explain
    from ragbed.retrieval.index_settings import IndexSettings

    given = {name: parse_yaml(text, f"--{name}") if text.startswith("{") else text
             for name in ("chunker", "embedder", "vectors") if (text := options[name]) is not None}
    given["formats"] = (options["format"] or "plain",)
    if options["ocr"]:
        MissingExtra.check("ocr", "rapidocr_onnxruntime")
        given["ocr"] = True
    usual, size = IndexSettings().chunker.kind, options["size"]
    cut = given.pop("chunker", usual)
    if size is not None and not isinstance(cut, str):
        refuse("--size cannot be combined with settings in --chunker; give the size there")
    if size is not None:
        given["chunker"] = {"kind": cut, **_sizes(cut, size)}
    elif cut != usual:
        given["chunker"] = cut
    try:
        return IndexSettings(**given)
    except ValidationError as error:
        raise SettingsError(explain(error, IndexSettings)) from error


def _sizes(kind: str, size: int) -> dict[str, int]:
    from ragbed.documents.chunkers import ChunkerSettings

    chunkers = {one.model_fields["kind"].default: one.model_fields for one in get_args(get_args(ChunkerSettings)[0])}
    fields = chunkers.get(kind, {"size": None})
    if "size" in fields:
        return {"size": size}
    if "target" not in fields:
        refuse(f"--size cannot be combined with --chunker {kind}, which has no size")
    return {"target": size, "largest": size * 5 // 4}
