"""What every strategy promises, and how it is checked: two processes with different hash seeds play the strategy, and
what came of it is compared. In them an audit hook, which cannot be taken out again, sees what reaches beyond the
process; what no hook sees, and what a strategy has no business with, its source may not name."""
from __future__ import annotations

import ast
import faulthandler
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ragbed.agents.settings import Limits
from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import child_environment
from ragbed.experiments.guests.conformance.playing import difference, examine
from ragbed.strategies.settings.plugins import FAMILIES, guess_family
from ragbed.strategies.settings.strategy_config import Family, Spec, built_in, parse_strategy

PROMISES: Mapping[str, str] = {
    "protocol": "whatever is replied, it yields searches, calls, lists of either and decisions, raises nothing, and "
                "ends with a Draft",
    "ends": "it ends, however long the model is never satisfied; the most that these plays ask for is no bound",
    "limits": "it can be stopped at any step by the limits of a question",
    "deterministic": "it asks for the same where the same was found and replied, in any process",
    "stateless": "what it did for one question changes nothing for the next",
    "answers": "under every set of rules and in every answer format a good reply is an answer, and a refusal is one",
    "shown": "every document that a prompt shows with its number, or asks for an answer from, is declared in `shown`",
    "gold": "nothing that may tell what is right or where it stands reaches a prompt or a query",
    "io": "it touches no file, network, process or screen",
    "source": "it reads no clock, no environment and no chance of its own, and nothing of the packages above it"}
_LATE = ("limits", "stateless", "answers", "shown", "gold")  # promises that a play can end too early for
_NO_CLOCK, _NO_CHANCE = "a recipe has no clock", "a recipe draws by task.rng() alone"
_FORBIDDEN = {
    r"imports (time|sched|calendar)\b": _NO_CLOCK, r"reads (datetime|date)\.(now|utcnow|today)$": _NO_CLOCK,
    r"imports (secrets|uuid|random\.(?!Random$)\w+)\b": _NO_CHANCE, r"reads random\.(?!Random$)\w+": _NO_CHANCE,
    r"reads \w*\.(_getframe|_current_frames)$": "a recipe sees its task alone",
    r"imports ragbed\.(agents|experiments|Assistant|Scripted|run|open_run)\b":
        "a strategy imports only ragbed.documents, ragbed.retrieval and ragbed.strategies",
    r"imports (asyncio|ctypes|http|httpx|aiohttp|multiprocessing|openai|requests|signal|socket|sqlite3|ssl|subprocess|"
    r"tempfile|threading|urllib3|urllib\.request|gc|inspect|os)\b": "a recipe asks for what it needs and does nothing "
                                                                    "itself"}
_SEEN = ("os.", "socket.", "subprocess.", "shutil.", "ctypes.dlopen", "urllib.", "http.", "ftplib.", "smtplib.",
         "sqlite3.", "tempfile.", "webbrowser.", "builtins.input", "pty.")
_LOOKS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.add_dll_directory")  # as imports do
_SECONDS, _MOST_PRINTED = 600.0, 1 << 25  # of a process; bytes
_FRAME = re.compile(r'File "((?:(?!conformance)[^"])+)", line (\d+) in (\S+)')


class PromiseVerdict(NamedTuple):
    """The verdict on one promise."""

    name: str  # of `PROMISES`
    passed: bool | None  # None where it broke another one before this could be seen
    detail: str  # one line: where it is broken, or what was played


def check_strategy(said: Spec, seconds: float = 10.0) -> list[PromiseVerdict]:
    """Check that a strategy keeps each of `PROMISES`, and return a verdict on each in their order; where it never comes
    to an end, on that alone. The strategy is executed, in processes of its own. Raises SettingsError where there is no
    such strategy, it cannot be loaded, or a parameter does not fit.

    Args:
        said: as settings name it: a name, `FILE.py:FUNCTION`, or `{kind: ..., ...}`.
        seconds: after which one play, which takes milliseconds, is held to be without end.
    """
    kind = str(said.get("kind") if isinstance(said, Mapping) else said)
    own = next((family for family in FAMILIES if kind in built_in(family)), None)
    return check_strategies([(own or guess_family(kind), said)], seconds)[0]


def check_strategies(strategies: Sequence[tuple[Family, Spec]], seconds: float = 10.0) -> list[list[PromiseVerdict]]:
    """Check several strategies, as `check_strategy` does, in two processes altogether."""
    order = json.dumps({"strategies": strategies, "seconds": seconds})
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / seed for seed in "12"]
        children = [_child(order, place) for place in places]
        try:
            for child in children:
                child.wait()
        finally:
            for child in children:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)  # with what a strategy may have left running
                child.wait()
        results = [_results(place, len(strategies)) for place in places]
    return [_verdicts(one, other) for one, other in zip(*results, strict=True)]


def _child(order: str, place: Path) -> subprocess.Popen[bytes]:
    """Begin the process whose hash seed is the name of the place, where it tells what came of its plays."""
    environment = child_environment(PYTHONHASHSEED=place.name, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    place.touch()
    # A file, not a pipe: it never fills up, and ends though a strategy's own process still holds it.
    with place.with_suffix(".out").open("a+b") as out:
        command = [sys.executable, "-c", f"from {__name__} import play; play()", str(place), order]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
                                start_new_session=True)


def _results(place: Path, count: int) -> list[dict[str, Any]]:
    told, printed = place.read_text("utf-8"), place.with_suffix(".out").read_text("utf-8", "replace").strip()
    found = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    if len(found) < count:
        stuck = (f"asks for nothing and does not end: {Path(frame[1]).name}:{frame[2]}, in {frame[3]}"
                 for frame in _FRAME.finditer(told))
        last = printed.splitlines()[-1][:200] if printed else "without a word"
        found.append({"ended": next(stuck, f"ends the process that plays it: {last}")})
    return found + [{"ended": "not played: a strategy before it ended the process"}] * (count - len(found))


def _verdicts(one: dict[str, Any], other: dict[str, Any]) -> list[PromiseVerdict]:
    if error := one.get("error") or other.get("error"):
        raise SettingsError(error)
    if ended := one.get("ended") or other.get("ended"):
        return [PromiseVerdict("ends", False, ended)]
    broken = {name: list(dict.fromkeys(what for promise, what in (*one["problems"], *other["problems"])
                                       if promise == name)) for name in PROMISES}
    if not broken["stateless"]:
        broken["deterministic"] = [f"in another process {said} ({play})" for play, asked in one["asked"].items()
                                   if (said := difference(asked, other["asked"].get(play, [])))][:1]
    plays, usual = f"{len(one['asked'])} plays", Limits()
    details = {"protocol": plays, "deterministic": plays,
               "ends": f"made at most {one['calls']} calls and {one['searches']} searches in {plays}"}
    if one["calls"] > usual.calls or one["searches"] > usual.searches:
        details["ends"] += f"; the usual limits are {usual.calls} and {usual.searches}"
    details |= {name: found[0] + (f"; and {len(found) - 1} more" if len(found) > 1 else "")
                for name, found in broken.items() if found}
    unseen = set(_LATE).difference(one["reached"])
    return [PromiseVerdict(name, False if found else None if name in unseen else True, details.get(name, ""))
            for name, found in broken.items()]


def broken_rules(source: str | bytes) -> Iterator[tuple[int, str]]:
    """Yield the lines of a source that import or read what is forbidden, each with why."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [f"imports {module}{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [f"reads {getattr(node.value, 'attr', getattr(node.value, 'id', ''))}.{node.attr}"]
        for name, (pattern, why) in product(names, _FORBIDDEN.items()):
            if found := re.match(pattern, name):
                yield getattr(node, "lineno", 0), f"{found[0]}; {why}"


def _watch() -> Callable[[Spec], AbstractContextManager[dict[str, None]]]:
    """Begin to see what reaches beyond the process, and return what notes it inside; the settings of the strategy that
    is played there, which it is given, may name files of worked examples."""
    named, seen = "", dict[str, None]()
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    allowed = (*map(str, places), str(Path(__file__).parents[3]) + os.sep + "strategies")

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if named and event == "open" and isinstance(given[0], str | bytes | os.PathLike):
            path, reads = os.fsdecode(given[0]), given[1] is None or not set(str(given[1])) & set("wax+")
            if not reads or not (path.endswith((".py", ".pyc", ".so", ".pyd", ".zip")) or json.dumps(path) in named
                                 or os.path.abspath(path).startswith(allowed)):
                seen[f"{'opens' if reads else 'writes'} {path!r:.80}"] = None
        elif named and event.startswith(_SEEN) and event not in _LOOKS:
            seen[f"{event} {given!r:.60}"] = None
            if event == "os.fork":  # else there would be two that play, and tell of it
                raise PermissionError("a recipe starts no process")

    @contextmanager
    def watching(said: Spec) -> Iterator[dict[str, None]]:
        nonlocal named
        seen.clear()
        os.ftruncate(1, 0)
        named = json.dumps(said)
        try:
            yield seen
        finally:
            named = ""
            sys.stdout.flush()
            if printed := os.pread(1, 160, 0).decode(errors="replace"):
                seen[f"prints {printed[:40]!r}"] = None

    sys.addaudithook(hook)
    return watching


def play() -> None:
    """Play, in a process of its own, what the last argument says; a line of JSON for each strategy goes into the file
    that the first one names, or the stack of one that does not end."""
    if sys.platform != "win32":  # whoever prints without end must not fill the disk
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_PRINTED, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    place, order, ends = Path(sys.argv[1]), json.loads(sys.argv[2]), time.monotonic() + _SECONDS
    sys.dont_write_bytecode = True
    sys.unraisablehook = lambda unraisable: None  # what a stopped generator raises is told as what breaks a limit
    watching, again = _watch(), place.name == "1"
    with place.open("w", encoding="utf-8", buffering=1) as told:

        def begins(plays: float = 1.0) -> None:
            if time.monotonic() > ends:
                sys.exit(f"all plays together take longer than {_SECONDS:g} s")
            faulthandler.dump_traceback_later(plays * order["seconds"], exit=True, file=told)

        for family, said in order["strategies"]:
            try:
                with watching(said) as seen:
                    begins(3.0)  # packages that it imports may be large
                    strategy = parse_strategy(family, said)
                    found = examine(strategy, begins, again)
                file = Path(inspect.getfile(inspect.unwrap(getattr(strategy.function, "func", strategy.function))))
                found["problems"] += [("io", what) for what in seen] + [
                    ("source", f"{file.name}:{line}: {what}") for line, what in broken_rules(file.read_bytes())]
            except SettingsError as error:
                found = {"error": str(error)}
            faulthandler.cancel_dump_traceback_later()
            told.write(json.dumps(found) + "\n")
    os._exit(0)  # a strategy's threads are not waited for
