"""Options that several commands share."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ragbed.experiments.commands.help import MORE
from ragbed.guests import entries, locate_run

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard


def refuse(why: str) -> NoReturn:
    """Raise SettingsError, imported here to keep `--help` fast."""
    from ragbed.documents.errors import SettingsError

    raise SettingsError(why)


def part_of(shard: str | None, *others: str) -> Shard | None:
    """Parse --shard. Raises SettingsError: it is not N/M, or one of the other options was given too."""
    from ragbed.documents.shards import Shard

    if shard and others:
        refuse(f"--shard cannot be combined with {others[0]}")
    return Shard.parse(shard) if shard else None


def _decoded(text: str) -> str:
    """Replace bytes of the command line that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


Query = Annotated[str, typer.Argument(help="The search query.", callback=_decoded)]
Asked = Annotated[str, typer.Argument(help="The question.", callback=_decoded)]
IndexFolder = Annotated[Path, typer.Option("--index", help="Folder of an index, made by `ragbed index`.")]
RetrieverText = Annotated[str, typer.Option("--retriever", help="See `ragbed list retrievers`; or settings in YAML.")]
Conditions = Annotated[list[str] | None, typer.Option("--where", metavar="FILTER", help=(
    "Search only chunks that match, e.g. 'page >= 3'."))]
Texts = list[str] | None
FinishedRun = Annotated[Path, typer.Argument(help="Folder of a finished run.", callback=locate_run)]
CellName = Annotated[str | None, typer.Option("--cell", metavar="NAME", help=(
    "Only cells with this name or part of it, e.g. direct."))]
Labels = Annotated[list[Path] | None, typer.Option("--labels", metavar="FILE", help=(
    "People's grades, to correct the scores: --sheet, or JSON Lines."))]
Metric = Annotated[str | None, typer.Option("--metric", metavar="NAME", help=(
    "See `ragbed list metrics`. Default: the headline metric."))]
Fresh = Annotated[bool, typer.Option("--fresh", rich_help_panel=MORE, help="Delete earlier results and start again.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N questions.")]
Sample = Annotated[int | None, typer.Option("--sample", min=1, help="N random questions, drawn with --seed.")]
ShardName = Annotated[str | None, typer.Option("--shard", metavar="N/M", rich_help_panel=MORE, help=(
    "Process only shard N of M, e.g. 3/16; see `ragbed merge`."))]
Launcher = Annotated[str | None, typer.Option("--launcher", metavar="WHERE", hidden=not entries("launcher"),
                                              rich_help_panel=MORE, help=(
    "Run as shards and merge: local:N, ray, ray:auto or ray:HOST:PORT."))]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Streamed = Annotated[bool, typer.Option("--stream", help="Show the answer while it is generated.")]
Traced = Annotated[bool, typer.Option("--trace", help="Show every step with its prompt.")]
DEFAULT_MODEL = "smollm2-135m"  # the catalogue's name; importing the catalogue would make `--help` slow
_FORMS = "openai:NAME, http://host/v1#NAME, gguf:PATH or a local name"
ModelName = Annotated[str, typer.Option("--model", metavar="NAME", help=f"{_FORMS}.")]
AnyModel = Annotated[str | None, typer.Option("--model", metavar="NAME", help=f"{_FORMS}.")]
