"""What every strategy promises, and how it is checked: two processes with different hash seeds play the strategy, and
what came of it is compared.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.conformance.playing import difference
from agents.settings import Limits
from documents.errors import SettingsError
from strategies.settings.choosing import Family, Said, known
from strategies.settings.plugins import FAMILIES, family_of

PROMISES: Mapping[str, str] = {
    "protocol": "it yields searches, calls, lists of one of the two and decisions, raises nothing, and ends with a "
                "Draft, whatever the model replies",
    "ends": "it ends, however long the model is never satisfied; of the calls and searches of these plays the most are "
            "named, which is no bound",
    "limits": "it can be stopped at any step by the limits of a question",
    "deterministic": "it asks for the same where the same was found and replied, in any process",
    "stateless": "what it did for one question changes nothing for the next",
    "answers": "under every set of rules and in every answer format a good reply is an answer, and a refusal is one",
    "shown": "every document that a prompt shows with its number, or asks for an answer from, is declared in `shown`",
    "gold": "nothing that may tell what is right or where it stands reaches a prompt or a query",
    "io": "it touches no file, network, process or screen",
    "source": "it reads no clock, no environment and no chance of its own, and nothing of the packages above it"}


@dataclass(frozen=True, slots=True)
class PromiseVerdict:
    """The verdict on one promise.

    Attributes:
        name: of `PROMISES`.
        passed: None where it broke another one before this could be seen.
        detail: one line: where it is broken, or what was played.
    """

    name: str
    passed: bool | None
    detail: str


_SECONDS = 600.0  # of a process
_LATE = ("limits", "stateless", "answers", "shown", "gold")  # promises that a play can end too early for
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)')


def check(said: Said, seconds: float = 10.0) -> list[PromiseVerdict]:
    """Check that a strategy keeps each of `PROMISES`, and return a verdict on each in their order; where it never comes
    to an end, on that alone. The strategy is executed, in processes of its own.

    Args:
        said: as settings name it: a name, `FILE.py:FUNCTION`, or `{kind: ..., ...}`.
        seconds: after which one play, which takes milliseconds, is held to be without end.

    Raises:
        SettingsError: there is no such strategy, it cannot be loaded, or a parameter does not fit.
    """
    return check_all([(_family(said), said)], seconds)[0]


def check_all(strategies: Sequence[tuple[Family, Said]], seconds: float = 10.0) -> list[list[PromiseVerdict]]:
    """Check several strategies, as `check` does, in two processes altogether."""
    with _child(strategies, "1", seconds) as first, _child(strategies, "2", seconds) as second:
        try:
            results = [_results(child, strategies) for child in (first, second)]
        finally:
            first.kill()  # both have ended, unless reading what they say was interrupted
            second.kill()
    return [_verdicts(one, other) for one, other in zip(*results, strict=True)]


def _family(said: Said) -> Family:
    kind = said if isinstance(said, str) else said.get("kind")
    if not isinstance(kind, str):
        raise SettingsError(f"expected a name, FILE.py:FUNCTION, or settings such as {{kind: NAME}}, not {said!r:.80}")
    return next((family for family in FAMILIES if kind in known(family)), None) or family_of(kind)


def _child(strategies: Sequence[tuple[Family, Said]], seed: str, seconds: float) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen([sys.executable, "-m", "agents.conformance.child"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, encoding="utf-8")
    assert child.stdin is not None
    child.stdin.write(json.dumps({"strategies": strategies, "again": seed == "1", "seconds": seconds}))
    child.stdin.close()
    child.stdin = None
    return child


def _results(child: subprocess.Popen[str], strategies: Sequence[tuple[Family, Said]]) -> list[dict[str, Any]]:
    try:
        out, err = child.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
    found = [json.loads(line) for line in out.splitlines()]
    if len(found) < len(strategies):
        found.append({"ended": _stuck(err)})
        found += [{"ended": "not played: a strategy before it ended the process"}] * (len(strategies) - len(found))
    return found


def _stuck(err: str) -> str:
    frames = [frame for frame in _FRAME.finditer(err) if "conformance" not in frame["file"]]
    if "Timeout" in err and frames:
        return (f"asks for nothing and does not end: {Path(frames[0]['file']).name}:{frames[0]['line']}, in "
                f"{frames[0]['function']}")
    last = (err.strip().splitlines() or ["without a word"])[-1]
    return f"ends the process that plays it: {last[:200]}"


def _verdicts(one: dict[str, Any], other: dict[str, Any]) -> list[PromiseVerdict]:
    for result in (one, other):
        if "error" in result:
            raise SettingsError(result["error"])
    ended = one.get("ended") or other.get("ended")
    if ended:
        return [PromiseVerdict("ends", False, ended)]
    broken: dict[str, list[str]] = {name: [] for name in PROMISES}
    for result in (one, other):
        for name, what in result["problems"]:
            broken[name].append(what)
    apart = next(((play, said) for play, asked in one["asked"].items()
                  if (said := difference(asked, other["asked"].get(play, [])))), None)
    if apart and not broken["stateless"]:
        broken["deterministic"].append(f"in another process {apart[1]} ({apart[0]})")
    unseen = set(_LATE).difference(one["reached"])
    return [PromiseVerdict(name, False if found else None if name in unseen else True, _detail(name, found, one))
            for name, found in broken.items()]


def _detail(name: str, broken: Sequence[str], result: dict[str, Any]) -> str:
    if broken:
        counts = Counter(broken)
        return broken[0] + (f"; and {len(counts) - 1} more" if len(counts) > 1 else "")
    if name == "ends":
        usual = Limits()
        more = result["calls"] > usual.calls or result["searches"] > usual.searches
        return (f"made at most {result['calls']} calls and {result['searches']} searches in {result['plays']} plays" + (
            f"; the usual limits are {usual.calls} and {usual.searches}" if more else ""))
    return f"{result['plays']} plays" if name in ("protocol", "deterministic") else ""
