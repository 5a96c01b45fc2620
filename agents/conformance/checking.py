"""What every strategy promises, and how it is checked: two processes with different hash seeds play the strategy, and
what came of it is compared.
"""
from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.conformance.playing import difference
from agents.settings import Limits
from documents.errors import SettingsError
from documents.places import child_environment
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
_SECONDS = 600.0  # of a process
_LATE = ("limits", "stateless", "answers", "shown", "gold")  # promises that a play can end too early for
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)')


@dataclass(frozen=True, slots=True)
class PromiseVerdict:
    """The verdict on one promise."""

    name: str  # of `PROMISES`
    passed: bool | None  # None where it broke another one before this could be seen
    detail: str  # one line: where it is broken, or what was played


def check(said: Said, seconds: float = 10.0) -> list[PromiseVerdict]:
    """Check that a strategy keeps each of `PROMISES`, and return a verdict on each in their order; where it never comes
    to an end, on that alone. The strategy is executed, in processes of its own.

    Args:
        said: as settings name it: a name, `FILE.py:FUNCTION`, or `{kind: ..., ...}`.
        seconds: after which one play, which takes milliseconds, is held to be without end.

    Raises:
        SettingsError: there is no such strategy, it cannot be loaded, or a parameter does not fit.
    """
    kind = said if isinstance(said, str) else said.get("kind")
    if not isinstance(kind, str):
        raise SettingsError(f"expected a name, FILE.py:FUNCTION, or settings such as {{kind: NAME}}, not {said!r:.80}")
    own = next((family for family in FAMILIES if kind in known(family)), None)
    return check_all([(own or family_of(kind), said)], seconds)[0]


def check_all(strategies: Sequence[tuple[Family, Said]], seconds: float = 10.0) -> list[list[PromiseVerdict]]:
    """Check several strategies, as `check` does, in two processes altogether."""
    with tempfile.TemporaryDirectory() as folder:
        began, places = time.monotonic(), [Path(folder) / seed for seed in "12"]
        children = [_child(strategies, seconds, place) for place in places]
        try:
            for child, place in zip(children, places, strict=True):
                try:
                    child.wait(max(began + _SECONDS - time.monotonic(), 0))
                except subprocess.TimeoutExpired:
                    place.with_suffix(".err").write_text(f"all plays together take longer than {_SECONDS:g} s")
        finally:
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)  # with what a strategy may have left running
                child.wait()
        results = [_results(place, len(strategies)) for place in places]
    return [_verdicts(one, other) for one, other in zip(*results, strict=True)]


def _child(strategies: Sequence[tuple[Family, Said]], seconds: float, place: Path) -> subprocess.Popen[bytes]:
    """Begin the process whose hash seed is the name of the place, where it tells what came of its plays."""
    environment = child_environment(PYTHONHASHSEED=place.name, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    order = json.dumps({"strategies": strategies, "again": place.name == "1", "seconds": seconds})
    # Files, not pipes: these never fill up, and end though a strategy's own process still holds them.
    with place.with_suffix(".out").open("a+b") as out, place.with_suffix(".err").open("a+b") as err:
        return subprocess.Popen([sys.executable, "-m", "agents.conformance.child", order, str(place)],
                                stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
                                start_new_session=True)


def _results(place: Path, count: int) -> list[dict[str, Any]]:
    told = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    found = [json.loads(line) for line in told if line.startswith("{")]
    if len(found) < count:
        found.append({"ended": _stuck("\n".join(told[len(found):]), place.with_suffix(".err"))})
        found += [{"ended": "not played: a strategy before it ended the process"}] * (count - len(found))
    return found


def _stuck(told: str, errors: Path) -> str:
    frames = [frame for frame in _FRAME.finditer(told) if "conformance" not in frame["file"]]
    if frames:
        return (f"asks for nothing and does not end: {Path(frames[0]['file']).name}:{frames[0]['line']}, in "
                f"{frames[0]['function']}")
    said = errors.read_text(encoding="utf-8", errors="replace").strip()
    return f"ends the process that plays it: {said.splitlines()[-1][:200] if said else 'without a word'}"


def _verdicts(one: dict[str, Any], other: dict[str, Any]) -> list[PromiseVerdict]:
    for result in (one, other):
        if "error" in result:
            raise SettingsError(result["error"])
    if ended := one.get("ended") or other.get("ended"):
        return [PromiseVerdict("ends", False, ended)]
    broken: dict[str, dict[str, None]] = {name: {} for name in PROMISES}
    for name, what in (*one["problems"], *other["problems"]):
        broken[name][what] = None
    apart = next(((play, said) for play, asked in one["asked"].items()
                  if (said := difference(asked, other["asked"].get(play, [])))), None)
    if apart and not broken["stateless"]:
        broken["deterministic"][f"in another process {apart[1]} ({apart[0]})"] = None
    unseen, usual = set(_LATE).difference(one["reached"]), Limits()
    details = dict.fromkeys(("protocol", "deterministic"), f"{one['plays']} plays")
    details["ends"] = f"made at most {one['calls']} calls and {one['searches']} searches in {one['plays']} plays"
    if one["calls"] > usual.calls or one["searches"] > usual.searches:
        details["ends"] += f"; the usual limits are {usual.calls} and {usual.searches}"
    details |= {name: next(iter(found)) + (f"; and {len(found) - 1} more" if len(found) > 1 else "")
                for name, found in broken.items() if found}
    return [PromiseVerdict(name, False if found else None if name in unseen else True, details.get(name, ""))
            for name, found in broken.items()]
