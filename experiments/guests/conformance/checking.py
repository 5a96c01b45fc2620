"""Check that a strategy follows the rules of all strategies.

Two processes with different hash seeds execute the strategy, and their actions are compared. An audit hook, which a
process cannot remove, reports access to files, network and processes. The source is searched for what no hook reports,
such as reading the clock.
"""
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

from ragbed.agents.model_settings import Limits
from ragbed.documents.child_process import end_with_parent
from ragbed.documents.errors import SettingsError
from ragbed.documents.paths import child_environment
from ragbed.experiments.guests.conformance.playing import difference, examine
from ragbed.strategies.reading import is_refusal
from ragbed.strategies.settings.plugins import offered_strategies, parse_file_kind
from ragbed.strategies.settings.source import parse_file, resolve_file
from ragbed.strategies.settings.strategy_config import Spec, built_in, check_tools, parse_strategy
from ragbed.strategies.types import FAMILIES, Family

PROMISES: Mapping[str, str] = {
    "protocol": "for any reply, it yields only searches, calls, lists of one kind, and decisions, raises nothing, and "
                "returns a Draft",
    "ends": "it ends even if the model is never satisfied (the calls counted here are not an upper bound)",
    "limits": "the limits of a question can stop it at any step",
    "deterministic": "the same results lead to the same actions, in any process",
    "stateless": "earlier questions do not affect later ones",
    "answers": "with all rules and answer formats, a good reply becomes an answer and a refusal becomes a refusal",
    "shown": "it declares in `shown` every document that a prompt numbers or asks for an answer from",
    "gold": "nothing that could reveal the gold reaches a prompt or a query",
    "io": "it uses no file, network, process or screen",
    "source": "its source reads no clock, environment or random numbers, and imports no package above it"}
_LATE = ("limits", "stateless", "answers", "shown", "gold")  # promises that a short play may leave untested
_NO_CLOCK, _NO_CHANCE = "a recipe must not read the clock", "a recipe may draw with task.rng() only"
_FORBIDDEN = {
    r"imports (time|sched|calendar)\b": _NO_CLOCK, r"reads (datetime|date)\.(now|utcnow|today)$": _NO_CLOCK,
    r"imports (secrets|uuid|random\.(?!Random$)\w+)\b": _NO_CHANCE, r"reads random\.(?!Random$)\w+": _NO_CHANCE,
    r"reads \w*\.(_getframe|_current_frames)$": "a recipe may see only its task",
    r"imports ragbed\.(agents|experiments(?!\.guests\.(?:agent|more_strategies)\.)|Assistant|Scripted|run|open_run)\b":
        "a strategy may import only ragbed.documents, ragbed.retrieval and ragbed.strategies",
    r"imports (asyncio|ctypes|http|httpx|aiohttp|multiprocessing|openai|requests|signal|socket|sqlite3|ssl|subprocess|"
    r"tempfile|threading|urllib3|urllib\.request|gc|inspect|os)\b": "a recipe yields actions "
                                                                    "instead"}
_SEEN = ("os.", "socket.", "subprocess.", "shutil.", "ctypes.dlopen", "urllib.", "http.", "ftplib.", "smtplib.",
         "sqlite3.", "tempfile.", "webbrowser.", "builtins.input", "pty.")
_IMPORT_EVENTS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.add_dll_directory")  # events of imports
_MAX_SECONDS, _MAX_PRINTED = 600.0, 1 << 25  # limits of a process; sizes are in bytes
_FRAME = re.compile(r'File "((?:(?!conformance)[^"])+)", line (\d+) in (\S+)')


class PromiseVerdict(NamedTuple):
    """The verdict on one of `PROMISES`.

    Attributes:
        passed: None if the strategy broke another promise before this one could be tested.
        detail: one line that says where the promise is broken, or what was executed.
    """

    name: str
    passed: bool | None
    detail: str


def guess_family(kind: str) -> Family:
    """Guess the family of a plug-in from its source or entry point. Nothing is executed."""
    place = parse_file_kind(kind)
    if place is None:
        return next((family for family in FAMILIES for one in offered_strategies(family) if one.name == kind),
                    "reasoning")
    file, name = place
    for node in ast.walk(parse_file(resolve_file(file), str(file))):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            if len(node.args.posonlyargs) + len(node.args.args) == 2:
                return "retrieval"
            return "history" if node.returns and ast.unparse(node.returns).endswith("Standalone") else "reasoning"
    return "reasoning"


def check_strategy(spec: Spec, seconds: float = 10.0) -> list[PromiseVerdict]:
    """Return a verdict on each of `PROMISES`, or only on `ends` if the strategy never ends. It runs in other processes.

    Args:
        spec: a name, `FILE.py:FUNCTION`, or settings `{kind: ..., ...}`.
        seconds: a play that takes longer counts as endless. Most plays take milliseconds.

    Raises:
        SettingsError: there is no such strategy, it cannot be loaded, or a parameter is invalid.
    """
    kind = str(spec.get("kind") if isinstance(spec, Mapping) else spec)
    own = next((family for family in FAMILIES if kind in built_in(family)), None)
    return check_strategies([(own or guess_family(kind), spec)], seconds)[0]


def check_strategies(strategies: Sequence[tuple[Family, Spec]], seconds: float = 10.0) -> list[list[PromiseVerdict]]:
    """Check several strategies in the same two processes."""
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
                    os.killpg(child.pid, signal.SIGKILL)  # also kills processes that the strategy left running
                child.wait()
        results = [_results(place, len(strategies)) for place in places]
    return [_verdicts(one, other) for one, other in zip(*results, strict=True)]


def _child(order: str, place: Path) -> subprocess.Popen[bytes]:
    """Start a process that writes its results to `place`, whose name is the hash seed."""
    environment = child_environment(PYTHONHASHSEED=place.name, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    place.touch()
    # A file, not a pipe: it cannot fill up, and a process left running by the strategy cannot keep it open.
    with place.with_suffix(".out").open("a+b") as out:
        command = [sys.executable, "-c", f"from {__name__} import play; play()", str(place), order,
                   str(os.getpid())]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
                                start_new_session=True)


def _results(place: Path, count: int) -> list[dict[str, Any]]:
    results, printed = place.read_text("utf-8"), place.with_suffix(".out").read_text("utf-8", "replace").strip()
    found = [json.loads(line) for line in results.splitlines() if line.startswith("{")]
    if len(found) < count:
        stuck = (f"yields nothing and does not end: {Path(frame[1]).name}:{frame[2]}, in {frame[3]}"
                 for frame in _FRAME.finditer(results))
        last = printed.splitlines()[-1][:200] if printed else "without output"
        found.append({"ended": next(stuck, f"ends its process: {last}")})
    return found + [{"ended": "not played: an earlier strategy ended the process"}] * (count - len(found))


def _verdicts(one: dict[str, Any], other: dict[str, Any]) -> list[PromiseVerdict]:
    if error := one.get("error") or other.get("error"):
        raise SettingsError(error)
    if ended := one.get("ended") or other.get("ended"):
        return [PromiseVerdict("ends", False, ended)]
    broken = {name: list(dict.fromkeys(what for promise, what in (*one["problems"], *other["problems"])
                                       if promise == name)) for name in PROMISES}
    if not broken["stateless"]:
        broken["deterministic"] = [f"in another process, {change} ({play})" for play, asked in one["asked"].items()
                                   if (change := difference(asked, other["asked"].get(play, [])))][:1]
    plays, usual = f"{len(one['asked'])} plays", Limits()
    details = {"protocol": plays, "deterministic": plays,
               "ends": f"at most {one['calls']} calls and {one['searches']} searches in {plays}"}
    if one["calls"] > usual.calls or one["searches"] > usual.searches:
        details["ends"] += f"; the default limits are {usual.calls} and {usual.searches}"
    details |= {name: found[0] + (f"; and {len(found) - 1} more" if len(found) > 1 else "")
                for name, found in broken.items() if found}
    unseen = set(_LATE).difference(one["reached"])
    return [PromiseVerdict(name, False if found else None if name in unseen else True, details.get(name, ""))
            for name, found in broken.items()]


def broken_rules(source: str | bytes) -> Iterator[tuple[int, str]]:
    """Yield the lines of source code that import or read something forbidden, with the reason."""
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
    """Install the audit hook. Return a context manager that collects what a strategy does outside the recipe; files
    named in the strategy's settings, such as exemplars, are allowed."""
    named, seen = "", dict[str, None]()
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    guests = Path(__file__).parents[1]  # which keep prompts and wordings in files
    allowed = (*map(str, (*places, guests.parents[1] / "strategies", guests)),)

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if named and event == "open" and isinstance(given[0], str | bytes | os.PathLike):
            path, reads = os.fsdecode(given[0]), given[1] is None or not set(str(given[1])) & set("wax+")
            if not reads or not (path.endswith((".py", ".pyc", ".so", ".pyd", ".zip")) or json.dumps(path) in named
                                 or os.path.abspath(path).startswith(allowed)):
                seen[f"{'opens' if reads else 'writes'} {path!r:.80}"] = None
        elif named and event.startswith(_SEEN) and event not in _IMPORT_EVENTS:
            seen[f"{event} {given!r:.60}"] = None
            if event == "os.fork":  # otherwise both processes would continue to play
                raise PermissionError("a recipe must not start a process")

    @contextmanager
    def watching(spec: Spec) -> Iterator[dict[str, None]]:
        nonlocal named
        seen.clear()
        os.ftruncate(1, 0)
        named = json.dumps(spec)
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
    """Play the strategies in the second command-line argument. The first one names a file, which gets a line of JSON
    per strategy, or the stack of a strategy that does not end.
    """
    if sys.platform != "win32":  # endless output must not fill the disk
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_PRINTED, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    end_with_parent(int(sys.argv[3]))
    place, order, ends = Path(sys.argv[1]), json.loads(sys.argv[2]), time.monotonic() + _MAX_SECONDS
    sys.dont_write_bytecode = True
    sys.unraisablehook = lambda unraisable: None  # errors of a stopped generator are reported as a broken limit
    is_refusal("")  # loads the rules for refusals, which are not the strategy's doing
    check_tools(["search"])  # loads the guest that has the tools
    watching, again = _watch(), place.name == "1"
    with place.open("w", encoding="utf-8", buffering=1) as results:

        def begins(plays: float = 1.0) -> None:
            if time.monotonic() > ends:
                sys.exit(f"all plays take longer than {_MAX_SECONDS:g} s")
            faulthandler.dump_traceback_later(plays * order["seconds"], exit=True, file=results)

        for family, spec in order["strategies"]:
            try:
                with watching(spec) as seen:
                    begins(3.0)  # the strategy may import large packages
                    strategy = parse_strategy(family, spec)
                    found = examine(strategy, begins, again)
                file = Path(inspect.getfile(inspect.unwrap(getattr(strategy.function, "func", strategy.function))))
                found["problems"] += [("io", what) for what in seen] + [
                    ("source", f"{file.name}:{line}: {what}") for line, what in broken_rules(file.read_bytes())]
            except SettingsError as error:
                found = {"error": str(error)}
            faulthandler.cancel_dump_traceback_later()
            results.write(json.dumps(found) + "\n")
    os._exit(0)  # do not wait for the strategy's threads
