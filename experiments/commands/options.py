"""Options that several commands share, and the guest that carries out `--launcher`."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Protocol

import typer

from ragbed.experiments.commands.help import MORE
from ragbed.guests import entries, load, locate_run

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard
    from ragbed.experiments.runs.store import RunFolder
    from ragbed.retrieval.build import BuildReport
    from ragbed.retrieval.types import Progress

def refuse(why: str) -> NoReturn:
    """Raise SettingsError, imported here to keep `--help` fast."""
    from ragbed.documents.errors import SettingsError

    raise SettingsError(why)


def part_of(shard: str | None, *others: str) -> Shard | None:
    """Parse --shard. Raises SettingsError if it is not N/M, or one of the other options was given too."""
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
RetrieverText = Annotated[str, typer.Option("--retriever", help="Name from `ragbed list retrievers`, or YAML.")]
Conditions = Annotated[list[str] | None, typer.Option("--where", metavar="FILTER", help=(
    "Search only chunks that match, e.g. 'page >= 3'."))]
Texts = list[str] | None
FinishedRun = Annotated[Path, typer.Argument(help="Folder of a finished run.", callback=locate_run)]
AnyRun = Annotated[Path, typer.Argument(help="Folder of a run, which may be unfinished.", callback=locate_run)]
CellName = Annotated[str | None, typer.Option("--cell", metavar="NAME", help=(
    "Only cells whose name contains this, e.g. direct."))]
Labels = Annotated[list[Path] | None, typer.Option("--labels", metavar="FILE", help=(
    "Human grades that correct scores: a --sheet or JSON Lines."))]
Metric = Annotated[str | None, typer.Option("--metric", metavar="NAME", help=(
    "See `ragbed list metrics`. Default: the main metric."))]
Unit = Annotated[str | None, typer.Option("--unit", metavar="NAME", help=(
    "Unit of inference for tests: question, document or a tag. Default: the run's."))]
Fresh = Annotated[bool, typer.Option("--fresh", rich_help_panel=MORE, help="Delete earlier results and start again.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N questions.")]
Sample = Annotated[int | None, typer.Option("--sample", min=1, help="N random questions, drawn with --seed.")]
ShardName = Annotated[str | None, typer.Option("--shard", metavar="N/M", rich_help_panel=MORE, help=(
    "Process only shard N of M, e.g. 3/16; then `ragbed merge`."))]
Launcher = Annotated[str | None, typer.Option("--launcher", metavar="WHERE", hidden=not entries("launcher"),
                                              rich_help_panel=MORE, help=(
    "Run in parallel: local:N, ray, ray:auto or ray:HOST:PORT."))]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Streamed = Annotated[bool, typer.Option("--stream", help="Show the answer while it is generated.")]
Traced = Annotated[bool, typer.Option("--trace", help="Show every step with its prompt.")]
DEFAULT_MODEL = "smollm2-135m"  # the catalogue's name; importing the catalogue would make `--help` slow
_FORMS = "openai:NAME, http://host/v1#NAME, gguf:PATH or a local name"
ModelName = Annotated[str, typer.Option("--model", metavar="NAME", help="Live model, as for `ragbed ask`.")]
AnyModel = Annotated[str | None, typer.Option("--model", metavar="NAME", help=f"Model: {_FORMS}.")]


class ShardLauncher(Protocol):
    """A way to run a command as shards, such as in several processes; guests add it in the slot `launcher`."""

    def launch(self, words: Sequence[str], launcher: str, wholes: Sequence[Path],
               asking: Iterable[Any] = ()) -> list[Shard]:
        """Run the command line `words` once per shard and return the shards. `launcher` is the value of the option,
        `wholes` are the folders to merge into, and `asking` has settings whose local models must be served."""
        ...

    def merge_indexes(self, folders: Sequence[Path], out: Path, progress: Progress) -> BuildReport:
        """Merge the shards of an index into the folder `out`."""
        ...

    def merged_run(self, folders: Sequence[Path], out: Path, fresh: bool = False) -> AbstractContextManager[RunFolder]:
        """Merge the shards of a run into the folder `out` and yield it; `fresh` replaces a run there."""
        ...


def find_launcher(text: str) -> ShardLauncher:
    """Return the launcher that the value of `--launcher` names by its first word, as in `local:4`. Raises
    SettingsError if no guest adds it."""
    known = entries("launcher")
    name = text.partition(":")[0]
    if name not in known:
        refuse(f"--launcher {text}: unknown launcher; there are: {', '.join(known) or 'none'}, as in local:4")
    found: ShardLauncher = load(known[name])
    return found
