"""Options that several commands share."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

IndexFolder = Annotated[Path, typer.Option("--index", help="Folder made by `ragbed index`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ModelName = Annotated[str, typer.Option("--model", help="openai:NAME, http://host/v1#NAME, gguf:PATH, "
                                                        "hf:OWNER/REPO/FILE.gguf, or a local model's name.")]
