"""Strategies as options of the command line name them: by a name, or by settings in YAML."""
from __future__ import annotations

from documents.errors import SettingsError
from experiments.settings.file import read_value
from strategies.settings.choosing import Family, Said, chosen


def said(text: str, option: str) -> Said:
    """What a text such as `direct`, `my.py:recipe` or `{kind: self_consistency, of: direct}` says.

    Args:
        option: for messages.

    Raises:
        SettingsError: it is neither a name nor a mapping.
    """
    value = read_value(text, option)
    if not isinstance(value, str | dict) or not value:
        raise SettingsError(f"{option} {text!r:.80}: expected a name of `ragbed list strategies`, FILE.py:FUNCTION, or "
                            "settings such as '{kind: self_consistency, of: direct}'")
    return value


def strategy_of(family: Family, text: str) -> Said:
    """The strategy of an option, as short as settings can name it; SettingsError says what does not fit."""
    return chosen(family, said(text, f"--{family}")).said
