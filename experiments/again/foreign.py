"""Whether the strategies of a run may be played again: those that are none of ragbed's, which reading a run does not
execute, and those that show worked examples from a file, which may be gone or another."""
from __future__ import annotations

from collections.abc import Collection, Mapping

from documents.errors import SettingsError
from strategies.settings.choosing import Strategy
from strategies.settings.plugins import file_of
from strategies.settings.source import hash_of


def hindrance(strategy: Strategy, recorded: Mapping[str, str], allowed: Collection[str]) -> str:
    """Why a strategy of a run is not played, in words; empty where it may be.

    Args:
        recorded: the hashes of sources by how settings name them, as the run's manifest has them.
        allowed: the files that the user says may be executed, named likewise.
    """
    if not strategy.has_sources:
        return ""
    for kind in strategy.files:
        place = file_of(kind)
        assert place is not None
        if kind not in allowed:
            return f"{kind} is code that came with the run; read it, then give --plugin {kind} to execute it"
        try:
            if hash_of(place[0]) != recorded.get(kind):
                return f"{kind} is not the file that the run was made with"
        except SettingsError as error:
            return str(error)
    try:
        changed = [kind for kind, content in strategy.sources.items() if content != recorded.get(kind)]
    except SettingsError as error:
        return str(error)
    return f"{changed[0]} is not what the run was made with" if changed else ""
