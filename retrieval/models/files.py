"""Reading a model's small files, which an interrupted fetch may have left damaged."""
from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PROMPTS = "config_sentence_transformers.json"


class _TokenizerRead(AbstractContextManager[None]):
    """Within, a tokenizer is read. For one that cannot be, the library raises `Exception` itself and nothing narrower;
    that becomes a ModelError, and nothing else does."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is Exception:
            raise damaged(self._path) from error


def damaged(path: Path) -> ModelError:
    """The error of a file of a model that is not what it should be."""
    return ModelError(f"{path} is damaged: fetch the model again")


def read_json(path: Path) -> Any:
    """The content of one of a model's JSON files.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(path) from error


def model_settings(path: Path) -> dict[str, Any]:
    """The object in one of a model's JSON files; empty where it has no such file.

    Raises:
        ModelError: there is no object in it.
    """
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise damaged(path)
    return content


def prompts_of(folder: Path) -> dict[str, str]:
    """The prompts that a sentence-transformers model declares, by name, without the empty ones.

    Raises:
        ModelError: the file that declares them is damaged.
    """
    prompts = model_settings(folder / PROMPTS).get("prompts") or {}
    if not isinstance(prompts, dict):
        raise damaged(folder / PROMPTS)
    return {name: text for name, text in prompts.items() if text}


def plain_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a `tokenizer.json`, made to cut and pad nothing.

    Raises:
        ModelError: it cannot be read.
    """
    from tokenizers import Tokenizer

    with _TokenizerRead(path):
        return uncut(Tokenizer.from_file(str(path)))


def uncut(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself, which cuts and pads nothing from now on."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
