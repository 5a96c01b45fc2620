"""Options that several commands share."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _decoded(text: str) -> str:
    """Bytes of the shell's that are no UTF-8 have no place in a prompt or a search."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


Query = Annotated[str, typer.Argument(help="What to look for.", callback=_decoded)]
Asked = Annotated[str, typer.Argument(help="The question.", callback=_decoded)]
IndexFolder = Annotated[Path, typer.Option("--index", help="Folder made by `ragbed index`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DEFAULT_MODEL = "smollm2-135m"  # the catalogue's; no other package is imported before its name is known to be ours
ModelName = Annotated[str, typer.Option("--model", help="openai:NAME, http://host/v1#NAME, gguf:PATH, "
                                                        "hf:OWNER/REPO/FILE.gguf, or a local model's name.")]
