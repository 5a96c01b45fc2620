"""What a user names anew to go on with a saved question: the file may be a stranger's, who is to have neither code
executed nor a key sent to a server of theirs."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from documents.errors import SettingsError
from retrieval.rerankers.judge import judges_of
from retrieval.serving.servers import clean, is_elsewhere
from retrieval.storage.folder import settled
from retrieval.storage.manifest import read_manifest
from strategies.settings.choosing import chosen

if TYPE_CHECKING:
    from agents.assistant import AssistantSettings

_SENT = "is a server that gets your key; to send it there"
_REPEATED = ("--plugin", "--judge")


def check_named(settings: AssistantSettings, file: Path, given: Mapping[str, Sequence[str | Path]]) -> None:
    """Make sure that the user names each file that is executed and each server that gets a key, and nothing besides.

    Args:
        settings: as the file has them.
        given: what the user names, by option.

    Raises:
        SettingsError: one line that says what to name, and what comes of it.
    """
    wanted = list(_wanted(settings, indexed=not given["--index"]))
    for option, value, why in wanted:
        if not given[option] or (option in _REPEATED and value not in given[option]):
            said = clean(value)
            raise SettingsError(f"{file}: the question goes on with {said}, which {why} give {option} {quote(said)}")
    for option in _REPEATED:
        known = [value for asked, value, _ in wanted if asked == option]
        for one in map(str, given[option]):
            if one not in known:
                raise SettingsError(f"{option} {one}: the question goes on without it; it has " +
                                    (" and ".join(known) or "nothing of the sort"))


def _wanted(settings: AssistantSettings, indexed: bool) -> Iterator[tuple[str, str, str]]:
    """Option, value, and why the user is to name it.

    Args:
        indexed: whether the index is where the file says.
    """
    for one in (chosen("reasoning", settings.reasoning, execute=False),
                chosen("retrieval", settings.retrieval, execute=False)):
        for code in one.files:
            yield "--plugin", code, "is code; read the file, and to execute it"
    if is_elsewhere(settings.model):
        yield "--model", settings.model, _SENT
    for judge in judges_of(settings.retriever):
        if is_elsewhere(judge.model):
            yield "--judge", judge.model, _SENT
    if indexed and any(map(is_elsewhere, _embedders(settings.index))):
        yield "--index", str(settings.index), "embeds questions at a server that gets your key; to send it there"


def _embedders(index: Path) -> list[str]:
    """Every name that an index has for its embedder; none where it cannot be read, which its opening says."""
    try:
        embedder = read_manifest(settled(index)).embedder
    except OSError:
        return []
    return [embedder.name, embedder.choice.model] if embedder.choice else [embedder.name]
