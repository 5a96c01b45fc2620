"""Read texts that replace ragbed's prompts: the files of a folder, or `instruction` and `system` of one strategy.

A file `direct.md` replaces `strategies/prompts/direct.md` or the prompt of a guest. It must have the same fields, such
as `{question}`. `instruction.md`, which is empty in ragbed, is added to the rules of every prompt for an answer.
"""
from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import expand_path
from ragbed.documents.types import digest
from ragbed.strategies.prompting import VARIANTS, fields_of, fill_text, prompt_names, read_prompt

DEFAULT_PROMPTS = "default"  # stands for ragbed's own prompts
OF_STRATEGY = ("instruction", "system")  # texts that the settings of a reasoning strategy may contain
_MAX_CHARACTERS = 100_000
_MAX_LABEL = 24


def prompts_label(folder: str) -> str:
    """Return the name of a folder of prompts in tables."""
    return Path(folder).name or folder


def read_prompts(folder: str | Path) -> dict[str, str]:
    """Return the texts of a folder by the prompt that they replace. Raises SettingsError if a file has another name
    than ragbed's prompts, other fields than the prompt, or cannot be read."""
    files = sorted(expand_path(folder).glob("*.md"))
    if not files:
        raise SettingsError(f"prompts: {folder}: not a folder with texts such as direct.md; `ragbed show-prompt "
                            "--texts` prints the names of the texts that can be replaced")
    return {file.stem: _read(file, f"prompts: {Path(folder) / file.name}") for file in files}


def _read(file: Path, where: str) -> str:
    names = [name for name in prompt_names() if name != VARIANTS]
    if file.stem not in names:
        near = get_close_matches(file.stem, names, 1)
        raise SettingsError(f"{where}: ragbed has no prompt {file.stem}; " + (
            f"did you mean {near[0]}.md?" if near else "`ragbed show-prompt --texts` prints the names"))
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{where}: cannot be read: {error}") from error
    wanted, found = fields_of(read_prompt(file.stem)), fields_of(text)
    check_text(text, where, empty=file.stem == OF_STRATEGY[0])
    if wrong := sorted(found - wanted):
        known = ", ".join(f"{{{name}}}" for name in sorted(wanted)) or "none"
        raise SettingsError(f"{where}: unknown field {{{wrong[0]}}}; this prompt's fields: {known}. For the text "
                            f"{{{wrong[0]}}} itself, write {{{{{wrong[0]}}}}}")
    if missing := sorted(wanted - found):
        raise SettingsError(f"{where}: the field {{{missing[0]}}} is missing; add it where its text belongs")
    return text if wanted else fill_text(text, file.stem, {})


def check_text(text: Any, where: str, empty: bool = False) -> str:
    """Return a prompt's text. Raises SettingsError if it is not text, empty or too long."""
    if not isinstance(text, str) or not (text.strip() or empty) or len(text) > _MAX_CHARACTERS:
        raise SettingsError(f"{where}: expected a text of at most {_MAX_CHARACTERS:,} characters, not {text!r:.40}")
    return text.strip()


def shorten_text(text: str) -> str:
    """Return a text as tables show it: on one line, and cut with a hash if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LABEL else f"{line[:_MAX_LABEL - 4].rstrip()}… {digest(text)[:4]}"


