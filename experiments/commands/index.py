"""`ragbed index`."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from experiments.commands.options import AsJson

if TYPE_CHECKING:
    from experiments.terminal.display import Bars
    from retrieval.build import BuildEstimate, BuildReport
    from retrieval.settings import IndexSettings
    from retrieval.storage.manifest import Manifest


Sources = Annotated[list[str] | None, typer.Argument(help="Files, folders or globs of HTML, PDF, text, Markdown; with "
                                                     "--remove, names as the index has them.")]
_LONG = 60.0  # seconds of embedding from which on it is worth a word how to make it shorter

Chunker = Annotated[str | None, typer.Option(help=(
    "How documents are cut: sections, sentences, recursive, fixed or crest, or settings in YAML, as in "
    "'{kind: fixed, size: 800, overlap: 80}'."))]
EmbedderText = Annotated[str | None, typer.Option(help=(
    "A sentence-transformers model by name or folder, after openvino:, openvino_bfloat16:, onnx: or bfloat16: for that "
    "backend; static:FOLDER, openai:NAME, http://host/v1#NAME; or settings in YAML."))]
Vectors = Annotated[str | None, typer.Option(help=(
    "How vectors are searched: auto, flat, hnsw, ivf or ivf_pq, or settings in YAML; auto goes by their number and the "
    "memory."))]
Rendering = Annotated[str | None, typer.Option(help="The rendering that is indexed: `plain` (the default) or `html`.")]
Fields = Annotated[Path | None, typer.Option(help="Fields of documents for filters: JSON Lines or CSV with `source`.")]
Add = Annotated[bool, typer.Option("--add", help="Add to the index, or replace in it; the rest stays.")]
Remove = Annotated[bool, typer.Option("--remove", help="Take these sources out of the index.")]
Check = Annotated[bool, typer.Option("--check", help="Compare every byte of the index with its hash.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and stop.")]


def index(sources: Sources = None, *, out: Annotated[Path, typer.Option("--out", help="The index folder.")],
          chunker: Chunker = None,
          size: Annotated[int | None, typer.Option(min=100, help="Chunk size in characters.")] = None,
          format: Rendering = None,
          embedder: EmbedderText = None, vectors: Vectors = None,
          metadata: Fields = None, add: Add = False, remove: Remove = False, check: Check = False,
          dry_run: DryRun = False, json: AsJson = False) -> None:
    """Parse, chunk, embed and index documents.

    Run again after a change, only what changed is done.
    """
    settings = {"--chunker": chunker, "--size": size, "--format": format, "--embedder": embedder, "--vectors": vectors}
    asked = IndexRequest(sources or [], out, settings, metadata, add, remove, check, dry_run)
    asked.check_together()
    if check:
        _check(out, json)
    elif dry_run:
        _estimate(asked, json)
    else:
        _build(asked, json)


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """The arguments of the command. `settings` are the options that make the index another one."""

    sources: list[str]
    out: Path
    settings: dict[str, Any]
    metadata: Path | None
    add: bool
    remove: bool
    check: bool
    dry_run: bool

    def check_together(self) -> None:
        """Raise SettingsError where options do not go together."""
        from documents.errors import SettingsError

        modes = [name for name, given in (("--add", self.add), ("--remove", self.remove), ("--check", self.check))
                 if given]
        set_options = [name for name, given in self.settings.items() if given is not None]
        if len(modes) > 1:
            raise SettingsError(f"{modes[0]} and {modes[1]} do not go together: one at a time")
        if self.check and (self.sources or self.dry_run):
            raise SettingsError("--check takes an index by --out, and nothing else")
        if not self.check and not self.sources:
            raise SettingsError("name the files, folders or globs to index")
        if modes and set_options:
            raise SettingsError(f"{set_options[0]} does not go with {modes[0]}: the index keeps its settings; build it "
                                "anew to change them")
        if self.remove and (self.metadata or self.dry_run):
            raise SettingsError(f"--remove does not go with {'--metadata' if self.metadata else '--dry-run'}")


def _check(out: Path, json: bool) -> None:
    from experiments.terminal.display import print_json, say
    from retrieval.index import Index

    manifest = Index.open(out, verify=True).manifest
    if json:
        print_json({"index": str(out), "documents": manifest.documents, "chunks": manifest.chunks,
                    "windows": manifest.windows, "files": manifest.files})
        return
    say(f"{out}: {manifest.documents} documents, {manifest.chunks} chunks; every byte is as it was written")


def _estimate(asked: IndexRequest, json: bool) -> None:
    from experiments.terminal.display import note, print_json
    from retrieval.build import estimate_index

    settings = None if asked.add else _settings(**_named(asked))
    estimate = estimate_index(asked.sources, asked.out, settings, add=asked.add)
    note(estimate.line())
    if json:
        print_json({"index": str(asked.out), "estimate": asdict(estimate)})


def _build(asked: IndexRequest, json: bool) -> None:
    from documents.errors import IndexFolderError
    from experiments.terminal.display import Bars, note, print_json, say
    from retrieval.storage.manifest import read_manifest

    estimates: list[BuildEstimate] = []

    def told(estimate: BuildEstimate) -> None:
        estimates.append(estimate)
        if estimate.sampled:
            note(estimate.line())
            if not asked.add and estimate.seconds.get("embedding", 0.0) > _LONG:
                _tell_of_backends(_settings(**_named(asked)))

    try:
        before = read_manifest(asked.out)
    except (IndexFolderError, OSError):
        before = None  # no index stands there, or none that can be read
    with Bars() as bars:
        report = _report(asked, bars, told)
    _warn(asked, before)
    for skipped in report.skipped:
        note(f"skipped {skipped}")
    if json:
        print_json({"index": str(asked.out), "documents": report.documents, "parsed": report.parsed,
                    "replaced": report.replaced, "removed": report.removed,
                    "chunks": report.chunks, "windows": report.windows, "embedded": report.embedded_now,
                    "reused": report.reused, "search": report.how, "seconds": report.seconds,
                    "skipped": [{"document": one.source, "reason": one.reason} for one in report.skipped],
                    "estimate": asdict(estimates[0]) if estimates else None})
        return
    changes = ((report.replaced, "replaced"), (report.removed, "removed"))
    changed = "".join(f", {count} {what}" for count, what in changes if count)
    say(f"{report.documents} documents{changed}, {report.chunks} chunks, "
        f"{report.windows} windows ({report.embedded_now} embedded now, {report.reused} known), "
        f"{len(report.skipped)} skipped; {sum(report.seconds.values()):.1f} s")
    say(f"{report.how}; {asked.out}")


def _tell_of_backends(settings: IndexSettings) -> None:
    """Say how to embed faster, where the model runs in the slowest way."""
    from experiments.terminal.display import note
    from retrieval.embedders import Sentence

    chosen = settings.embedder
    if isinstance(chosen, Sentence) and chosen.backend == "float32":
        note(f"--embedder openvino:{chosen.model} gives the same vectors more than twice as fast on many processors, "
             f"and openvino_bfloat16: nearly the same, faster still; both need: pip install 'ragbed[openvino]'")


def _report(asked: IndexRequest, bars: Bars, told: Callable[[BuildEstimate], None]) -> BuildReport:
    from retrieval.build import add_to_index, build_index, remove_from_index
    from retrieval.filters.metadata import read_metadata

    metadata = read_metadata(asked.metadata) if asked.metadata else None
    if asked.remove:
        return remove_from_index(asked.sources, asked.out, bars)
    if asked.add:
        return add_to_index(asked.sources, asked.out, bars, metadata=metadata, estimated=told)
    return build_index(asked.sources, asked.out, _settings(**_named(asked)), bars, metadata=metadata, estimated=told)


def _warn(asked: IndexRequest, before: Manifest | None) -> None:
    from experiments.terminal.display import note

    if before is None or asked.add or asked.remove:
        return
    if before.settings != _settings(**_named(asked)):
        note("the index that stood here was made with other settings; options are not remembered, so give them again")
    if before.fields and asked.metadata is None:
        note("the index that stood here had metadata; it is not remembered, so give --metadata again")


def _named(asked: IndexRequest) -> dict[str, Any]:
    return {name.removeprefix("--"): value for name, value in asked.settings.items()}


def _settings(chunker: str | None, size: int | None, format: str | None, embedder: str | None,
              vectors: str | None) -> IndexSettings:
    from pydantic import ValidationError

    from documents.errors import SettingsError
    from experiments.settings.file import explain, read_value
    from retrieval.settings import IndexSettings

    usual = IndexSettings()
    given: dict[str, Any] = {name: read_value(text, f"--{name}") if text.startswith("{") else text
                             for name, text in (("chunker", chunker), ("embedder", embedder), ("vectors", vectors))
                             if text is not None}
    given["formats"] = (format or "plain",)
    cut = given.pop("chunker", usual.chunker.kind)
    if size is not None and not isinstance(cut, str):
        raise SettingsError("--size stands in the settings of --chunker already; give it there")
    if size is not None:
        given["chunker"] = {"kind": cut, **_sizes(cut, size)}
    elif cut != usual.chunker.kind:
        given["chunker"] = cut
    try:
        return IndexSettings(**given)
    except ValidationError as error:
        raise SettingsError(explain(error.errors(include_url=False)[0], IndexSettings)) from error


def _sizes(kind: str, size: int) -> dict[str, int]:
    from documents.chunkers import ChunkerSettings
    from documents.errors import SettingsError

    chunkers = {one.model_fields["kind"].default: one.model_fields for one in get_args(get_args(ChunkerSettings)[0])}
    fields = chunkers.get(kind, {"size": None})
    if "size" in fields:
        return {"size": size}
    if "target" in fields:
        return {"target": size, "largest": size * 5 // 4}
    raise SettingsError(f"--size does not go with --chunker {kind}, which has no one size")
