"""The settings of a run that is made again from its cassette alone."""
from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from documents.errors import SettingsError
from experiments.cassettes.replay import Replay
from experiments.settings import RunSettings
from experiments.settings.file import check_settings, read_value
from experiments.settings.strategies import strategies_of
from experiments.settings.targets import Part, narrowed, option
from strategies.settings.plugins import FAMILIES

TAKEN = ("name", "out", "set")


def settings_of_cassette(replay: Replay, options: Mapping[str, Any], part: Part) -> RunSettings:
    """The settings that were recorded, some of them changed.

    Args:
        options: of the command line; those of `TAKEN`, for anything else a TARGET says what is run.

    Raises:
        SettingsError: another option is given, or one that does not fit.
    """
    other = next((name for name in options if name not in TAKEN), None)
    if other is not None:
        raise SettingsError(f"{option(other)} goes with a TARGET; {replay.path} says itself what was run, and --set "
                            "KEY=VALUE changes a part of it")
    content = copy.deepcopy(replay.about.settings)
    content |= {name: str(options[name]) for name in ("name", "out") if name in options}
    _set(content, options.get("set", ()))
    check_named(check_settings(content, str(replay.path), checked=True), replay, options.get("set", ()))
    settings = check_settings(content, str(replay.path))
    return narrowed(settings, part, rename="name" not in options)


def check_named(settings: RunSettings, replay: Replay, said: Sequence[str]) -> None:
    """Make sure that the user names each file that is executed: a cassette may be a stranger's."""
    files = [file for family in FAMILIES for one in strategies_of(settings, family).values() for file in one.files]
    unnamed = next((file for file in files if not any(file in text for text in said)), None)
    if unnamed is not None:
        raise SettingsError(f"{replay.path}: its run used the strategy {unnamed}, which is code; read the file, then "
                            "name the run's strategies with --set, as in "
                            f"--set 'reasoning=[direct, \"{unnamed}\"]', or give the settings as TARGET")


def _set(content: dict[str, Any], texts: Sequence[str]) -> None:
    """Put values in the place of those that were recorded, each given as `key.key=value`."""
    for text in texts:
        place, equals, value = text.partition("=")
        *keys, last = place.split(".")
        inner: Any = content
        for key in keys:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if not equals or not last or not isinstance(inner, dict):
            raise SettingsError(f"--set {text!r}: expected KEY=VALUE with the key of a setting, as in --set "
                                "benchmark.path=FOLDER")
        inner[last] = read_value(value, f"--set {text!r}")
