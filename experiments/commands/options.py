"""Options that several commands share."""
from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperOption

from ragbed.guests import entries, locate_run

if TYPE_CHECKING:
    from ragbed.documents.shards import Shard


def refuse(why: str) -> NoReturn:
    """Raise SettingsError, whose package is imported when its name is known to be ours."""
    from ragbed.documents.errors import SettingsError

    raise SettingsError(why)


def part_of(shard: str | None, *others: str) -> Shard | None:
    """Return the shard that --shard names, if any; SettingsError where it is none or others do not go with it."""
    from ragbed.documents.shards import Shard

    if shard and others:
        refuse(f"--shard does not go with {others[0]}")
    return Shard.parse(shard) if shard else None


class Command(TyperCommand):
    """A command that refuses an option without a value, such as an unset variable of a script leaves: it is no way of
    leaving the option out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        valued = {name for one in self.params if isinstance(one, TyperOption) and not one.is_flag for name in one.opts}
        for before, given in pairwise(["", *args]):
            name = before if given == "" else given.removesuffix("=") if given.endswith("=") else ""
            if name in valued:
                refuse(f"{name} is given nothing; give it a value, or leave it out")
        return super().parse_args(ctx, args)


def _decoded(text: str) -> str:
    """Bytes of the shell's that are no UTF-8 have no place in a prompt or a search."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


Query = Annotated[str, typer.Argument(help="What to look for.", callback=_decoded)]
Asked = Annotated[str, typer.Argument(help="The question.", callback=_decoded)]
IndexFolder = Annotated[Path, typer.Option("--index", help="Folder made by `ragbed index`.")]
RetrieverText = Annotated[str, typer.Option("--retriever", help="A kind of `ragbed list retrievers`, or settings in "
                                            "YAML, as in '{kind: reranked, of: bm25}'.")]
Conditions = Annotated[list[str] | None, typer.Option("--where", help="Which chunks may be found, as in 'page >= 3' or "
                                                      "'source = reports/*'; several are all to be met.")]
Texts = list[str] | None
FinishedRun = Annotated[Path, typer.Argument(help="A finished run's folder.", callback=locate_run)]
CellName = Annotated[str | None, typer.Option("--cell", help=(
    "Only cells of this name, as tables show it, or part of it, as in --cell direct; by default every one."))]
Labels = Annotated[list[Path] | None, typer.Option("--labels", help=(
    "A filled-in sheet of `ragbed judge --sheet`, or JSON Lines with cell, question and grade: scores are corrected "
    "by it. May be given again."))]
Metric = Annotated[str | None, typer.Option("--metric", help=(
    "See `ragbed list metrics`; by default the first column of the run's table."))]
Fresh = Annotated[bool, typer.Option("--fresh", help="Remove what an earlier run left and begin anew.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first so many questions.")]
Sample = Annotated[int | None, typer.Option("--sample", min=1, help="So many questions, drawn by --seed.")]
ShardName = Annotated[str | None, typer.Option("--shard", metavar="NUMBER/OF", help=(
    "Only this part, as in 3/16, beside the others; `ragbed merge` joins them, parts of a set the same command without "
    "it."))]
Launcher = Annotated[str | None, typer.Option("--launcher", metavar="WHERE", hidden=not entries("launcher"), help=(
    "Run as shards and merge them: local:N (processes), ray:auto or ray:HOST:PORT (a Ray cluster), ray (Ray on this "
    "machine)."))]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Streamed = Annotated[bool, typer.Option("--stream", help="Show what the model says as it comes, and each step; with "
                                        "--json, one event on each line.")]
Traced = Annotated[bool, typer.Option("--trace", help="Show every step with its prompt.")]
DEFAULT_MODEL = "smollm2-135m"  # the catalogue's; no other package is imported before its name is known to be ours
_MODEL_FORMS = "openai:NAME, http://host/v1#NAME, gguf:PATH, hf:OWNER/REPO/FILE.gguf, or a local model's name"
ModelName = Annotated[str, typer.Option("--model", help=f"{_MODEL_FORMS}.")]
AnyModel = Annotated[str | None, typer.Option("--model", help=(
    f"{_MODEL_FORMS}; by default what RAGBED_MODEL names, else OpenAI's with OPENAI_API_KEY, else that of a server on "
    "this machine (Ollama, LM Studio, llama.cpp, vLLM), else the small local one."))]
