"""Every play of one strategy, in one process."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from agents.conformance.playing import WIDE, Played, Situation, play, situations
from agents.conformance.stand_ins import StandIn, good, refusing, stand_ins
from agents.settings import Limits
from strategies.answering import answer
from strategies.catalogue import RETRIEVAL
from strategies.settings.choosing import Strategy
from strategies.settings.source import RAISED_BY_CODE, failing_line
from strategies.types import Evidence, Recipe, Retrieval, Task

_HARD = ("grounded", "as JSON", "new evidence for every search")
_LESS_HARD = ("choice", "closed-book", "with sub-answers", "no evidence", "without separators, as JSON")
_FEW = 4  # stand-ins of the less hard situations
_LIMITS = (Limits(calls=1), Limits(calls=2), Limits(searches=0), Limits(searches=1), Limits(tokens=150))
_SECOND = "Who built the bridge?"

Told = Callable[[str], object]


@dataclass(slots=True)
class Examined:
    """What came of all plays.

    Attributes:
        problems: promises that were broken, each with where.
        asked: by play, what was asked for in words and as a hash.
        calls, searches: the most of any play.
        reached: promises that plays came far enough to show kept.
    """

    problems: list[tuple[str, str]] = field(default_factory=list)
    asked: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    calls: int = 0
    searches: int = 0
    reached: list[str] = field(default_factory=list)


def examine(strategy: Strategy, told: Told, again: bool) -> Examined:
    """Play a strategy in every situation.

    Args:
        told: is told the name of each play before it begins.
        again: whether to play it all a second time, the last first, and compare.
    """
    found, plays = Examined(), list(_plays())
    for situation, name, stand_in in plays:
        told(f"{situation.name}, with {name}")
        played = _play(strategy, situation, name, stand_in)
        found.asked[played.name] = played.asked
        found.calls, found.searches = max(found.calls, played.calls), max(found.searches, played.searches)
        _judge(found, played, situation, stand_in)
        if played.outcome == "budget":
            return found  # and so would many another, each of them for long
    if again:
        _play_again(found, strategy, plays, told)
    _limited(found, strategy, told)
    return found


def _plays() -> Iterator[tuple[Situation, str, StandIn]]:
    known = list(situations())
    for situation in known:
        yield situation, "a model that answers", good
        yield situation, "a model that refuses", refusing
    for situation in known:
        others = list(stand_ins())
        if situation.name in _HARD:
            yield from ((situation, *other) for other in others)
        elif situation.name in _LESS_HARD:
            yield from ((situation, *other) for other in others[:_FEW])


def _play(strategy: Strategy, situation: Situation, name: str, stand_in: StandIn, limits: Limits = WIDE) -> Played:
    function = strategy.function if limits is WIDE else _bare(strategy.function)
    if strategy.family == "retrieval":
        return play(_searches, function, situation, name, stand_in, limits)
    closed = situation.changes.get("rules") == "closed-book"
    usual = cast(Retrieval, RETRIEVAL["none" if closed else "once"])
    return play(function, usual, situation, name, stand_in, limits)


def _searches(task: Task) -> Recipe:
    """Gathers for the question and for another query, and answers."""
    evidence: Evidence = yield from task.gather(task.question)
    more: Evidence = yield from task.gather(_SECOND)
    both = {passage.number: passage for passage in (*evidence, *more)}
    return (yield from answer(task, "direct", tuple(both.values()), thinks=False))


def _judge(found: Examined, played: Played, situation: Situation, stand_in: StandIn) -> None:
    at, rules = f" ({played.name})", situation.changes.get("rules", "grounded")
    found.problems += [(promise, problem + at) for promise, problem in played.problems]
    if played.problems:
        return
    found.reached += ["answers", "shown", "gold"]
    if played.outcome == "budget":
        found.problems.append(("ends", f"does not end within {WIDE.calls} calls and {WIDE.searches} searches{at}"))
    if played.outcome in ("budget", "searched"):
        return
    if stand_in is good:
        fine = ("answered", "refused") if rules == "grounded" else ("answered",)
        if played.outcome not in fine:
            found.problems.append(("answers", f"a good reply ends as {played.outcome}{at}"))
        if situation.changes.get("answer_format") == "json" and not played.forms and played.calls:
            found.problems.append(("answers", f"no call asks for the fields of an answer{at}"))
    elif stand_in is refusing and rules == "grounded" and played.outcome != "refused":
        found.problems.append(("answers", f"a refusal ends as {played.outcome}{at}"))
    elif "server without tools" in played.name and played.outcome == "error":
        found.problems.append(("answers", f"ends as an error where the server has no tools{at}"))


def _play_again(found: Examined, strategy: Strategy, plays: list[tuple[Situation, str, StandIn]], told: Told) -> None:
    for situation, name, stand_in in reversed(plays):
        told(f"{situation.name}, with {name}, again")
        played = _play(strategy, situation, name, stand_in)
        apart = difference(found.asked[played.name], played.asked)
        if apart:
            found.problems.append(("stateless", f"played again after other questions, {apart} ({played.name})"))
            return
    found.reached.append("stateless")


def difference(asked: list[Any], other: list[Any]) -> str:
    """Where two plays first differ, in words; empty where they do not."""
    for place, (one, two) in enumerate(zip(asked, other, strict=False)):
        if list(one) != list(two):
            return f"step {place + 1} differs: {one[0]}" + (f", then {two[0]}" if one[0] != two[0] else
                                                            ", with another content")
    return "" if len(asked) == len(other) else f"one has {len(asked)} steps, the other {len(other)}"


def _limited(found: Examined, strategy: Strategy, told: Told) -> None:
    first, wanting = next(situations()), next(one for name, one in stand_ins() if "ever more" in name)
    for limits in _LIMITS:
        told(f"{limits.calls} calls, {limits.searches} searches")
        try:
            played = _play(strategy, first, "a model that wants ever more", wanting, limits)
        except RuntimeError as error:
            found.problems.append(("limits", f"goes on after it was stopped: {error}"))
            return
        except RAISED_BY_CODE as error:
            if not found.problems:  # else told already, as what breaks the protocol
                found.problems.append(("limits", f"raises where it is stopped: {failing_line(error)}"))
            return
        if played.problems:
            return  # told already too
        if played.calls > limits.calls or played.searches > limits.searches:
            found.problems.append(("limits", f"made {played.calls} calls and {played.searches} searches of "
                                             f"{limits.calls} and {limits.searches}"))
    found.reached.append("limits")


def _bare(function: Any) -> Any:
    """A strategy without what keeps a run from what it raises."""
    if isinstance(function, partial):
        return partial(inspect.unwrap(function.func), **function.keywords)
    return inspect.unwrap(function)
