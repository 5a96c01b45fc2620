"""Questions that were saved after a step, to go on in another process: the mark of what they were made with, and files.

The state of a question is plain JSON by design, so that a file of it needs neither a database nor a serialiser that
could bring anything but data to life: it is written anew after each step, whole or not at all, and can be read by
anyone. LangGraph's own SQLite checkpointer keeps every version of the state, in three files, and brings a native
extension along; a server that has many questions at once gives `Assistant.open` whichever checkpointer it likes.

Bringing a question back to where it was when it was saved.
"""
from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from agents.outcome import CallOutcome
from agents.playback import Playback, search_hash
from agents.saved_form import misfit
from documents.errors import RecipeMismatch, SettingsError
from documents.places import local
from documents.types import Chunk, digest
from retrieval.storage.files import why_unwritten, write_atomically
from strategies.prompting import prompts_hash
from strategies.settings.choosing import Strategy, known
from strategies.types import Failure

if TYPE_CHECKING:
    from agents.assistant import AssistantSettings
    from agents.graph import State
    from retrieval.index import Index

_FORMAT = "ragbed question 1"
_ELSEWHERE = {"index", "model", "calls"}  # where things are and how they are reached may change; what they are may not


def mark_of(settings: AssistantSettings, reasoning: Strategy, retrieval: Strategy, index: Index,
            identity: str) -> dict[str, Any]:
    """What a question is made with, as plain JSON: the settings, and hashes of what they only name.

    Args:
        identity: of the model.
    """
    said = {"reasoning": reasoning.said, "retrieval": retrieval.said, "index": str(settings.index.resolve())}
    return {"settings": {**settings.model_dump(mode="json"), **said}, "model": identity, "index": index.content,
            "strategies": digest(prompts_hash(), *_code(reasoning), *_code(retrieval))}


def check_mark(made: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Make sure that a question can go on with what there is now.

    Raises:
        RecipeMismatch: one line that says what differs.
    """
    before, after = _parts(made), _parts(now)
    differing = [name for name in after if before.get(name) != after[name]]
    if differing:
        told = "; ".join(_apart(name, before.get(name), after[name]) for name in differing)
        raise RecipeMismatch(f"the question cannot go on, for it was begun otherwise: {told}; ask it again")


@cache
def _code_of(module: str) -> dict[str, str]:
    """The source of a module of ragbed's strategies, and of those that it imports, by name. The code of strategies that
    have no part in a question makes no difference to it."""
    found: dict[str, str] = {}
    left = [module]
    while left:
        name = left.pop()
        loader = _loader(name) if name.startswith("strategies.") and name not in found else None
        if loader is None:
            continue
        found[name] = loader.get_data(loader.path).decode()
        for node in ast.walk(ast.parse(found[name])):
            if isinstance(node, ast.ImportFrom) and node.module:
                left += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
    return found


def _loader(name: str) -> SourceFileLoader | None:
    """What loads a module; None where the name is that of something in a module."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return spec.loader if spec and isinstance(spec.loader, SourceFileLoader) else None


def _code(strategy: Strategy) -> Iterator[str]:
    """What decides what a strategy asks for, as texts: its own code and that of its parts, and hashes of the rest."""
    if not strategy.is_plugin:
        for name, text in sorted(_code_of(known(strategy.family)[strategy.kind].__module__).items()):
            yield from (name, text)
    for name, content in sorted(strategy.sources.items()):
        yield from (name, content)
    for part in strategy.parts:
        yield from _code(part)


def write_state(path: Path, state: State) -> None:
    """Keep a state in a file, in the place of an earlier one, which stays where the new one cannot be written.

    Raises:
        SettingsError: it cannot be written.
    """
    text = json.dumps(state)
    try:
        write_atomically(path, json.dumps({"format": _FORMAT, "sha256": digest(text), "state": state}).encode())
    except OSError as error:
        again = f"`ragbed resume {path}` goes on" if path.exists() else "the same command begins again"
        raise SettingsError(f"{path}: {why_unwritten(error, again)}") from error


def read_state(path: Path) -> State:
    """The state that a file keeps.

    Raises:
        UserError: there is none, or it is not as it was written.
    """
    place = local(path)
    try:
        if place.exists() and not place.is_file():
            raise SettingsError(f"{path}: is no file")
        kept = json.loads(place.read_bytes())
        whole = isinstance(kept, dict) and digest(json.dumps(kept.get("state"))) == kept.get("sha256")
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        kept, whole = None, False
    if not isinstance(kept, dict) or kept.get("format") != _FORMAT:
        raise SettingsError(f"{path}: is no question that `ragbed ask --save` kept")
    state = kept.get("state")
    amiss = misfit(state) if whole else "its hash does not fit"
    if amiss:
        raise SettingsError(f"{path}: was changed since it was written ({amiss}); ask the question again")
    return cast("State", state)


def settings_of(state: State) -> AssistantSettings:
    """The settings that a question was begun with.

    Raises:
        UserError: they do not fit this version, or their index can be nowhere.
    """
    from agents.assistant import AssistantSettings
    try:
        settings = AssistantSettings.model_validate(state["made"]["settings"])
        local(settings.index)
        return settings
    except (KeyError, ValidationError):
        raise SettingsError("the question was begun with another version of ragbed; ask it again") from None


def _parts(made: Mapping[str, Any]) -> dict[str, Any]:
    settings = made["settings"]
    calls = {name: settings.get("calls", {}).get(name) for name in ("temperature", "reasoning_effort")}
    return {**{name: value for name, value in settings.items() if name not in _ELSEWHERE}, **calls,
            "model": made["model"], "index": made["index"], "strategies": made["strategies"]}


def _apart(name: str, before: Any, after: Any) -> str:
    if name == "index":
        return "the index holds something else"
    if name == "strategies":
        return "the strategies or their prompts have changed"
    return f"{name} was {json.dumps(before)[:80]} and is {json.dumps(after)[:80]}"


def restore(play: Playback, results: Sequence[Mapping[str, Any]]) -> None:
    """Bring a fresh playback to where the recorded results leave it, with what they used of its budget. Nobody is told
    of their steps again.

    Raises:
        RecipeMismatch: the recipe asks for something other than what was recorded, or the index lacks what was found.
    """
    for entry in results:
        node = "generate" if "asked" in entry else "search"
        wanted = [*map(search_hash, play.searches()), *map(play.means.key, play.calls())]
        if play.node != node or wanted != entry["actions"]:
            raise RecipeMismatch(f"question {play.task.id}: step {len(play.trace) + 1} of the strategy differs "
                                 "from what was recorded; the strategy or its prompts have changed since")
        if "found" in entry:
            play.take_found([_chunks(play, ids) for ids in entry["found"]])
        elif "lost" in entry:
            play.take_lost(Failure(**entry["lost"]))
        else:
            play.take_asked([CallOutcome.from_json(one) for one in entry["asked"]])
        play.started -= entry.get("seconds", 0.0)
        play.told = len(play.trace)


def _chunks(play: Playback, ids: Iterable[str]) -> list[Chunk]:
    try:
        return [play.means.chunk(id) for id in ids]
    except KeyError as error:
        raise RecipeMismatch(f"question {play.task.id} names a passage that the index does not have: "
                             f"{error.args[0]!r:.80}") from None
