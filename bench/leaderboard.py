"""Try to cheat a leaderboard: change a genuine submission in many ways, and count how many of them are refused.

    python bench/leaderboard.py [--submissions 1000] [--seed 0] [--json]

The genuine submission is a run over six questions with a scripted model. The cheater recomputes every checksum of the
file that can be recomputed without running the replay.
"""
from __future__ import annotations

import argparse
import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import ragbed
from ragbed.agents.database import text_hash
from ragbed.experiments.guests.exports.cassettes import export_cassette
from ragbed.experiments.guests.leaderboard.submission_checks import Reference, check_all
from ragbed.experiments.runs.finished import open_finished
from ragbed.experiments.settings import RunSettings

QUESTIONS = Path(__file__).parent.parent / "tests" / "data" / "hotpotqa_195"
Lines = list[dict[str, Any]]
# Settings that no result depends on: speed, prices, and where files are.
_NEUTRAL = ("run.settings.concurrency", "run.settings.calls.calls", "run.settings.calls.local",
            "run.settings.calls.prices", "run.settings.benchmark.path")


def unpack(path: Path) -> Lines:
    """Return the lines of a cassette without the last, which has the checksum."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()][:-1]


def pack(lines: Lines, path: Path) -> None:
    """Write a cassette with right counts and checksums."""
    counts = {"texts": 0, "calls": 0, "searches": 0}
    texts = [(json.dumps(line, ensure_ascii=False) + "\n").encode() for line in lines]
    for line in lines:
        name = next(iter(line))
        counts |= {one: counts[one] + 1 for one in counts if one == {"search": "searches"}.get(name, f"{name}s")}
    end = json.dumps({"end": counts, "sha256": sha256(b"".join(texts)).hexdigest()}) + "\n"
    packed = BytesIO()
    with gzip.GzipFile("", "wb", 6, packed, mtime=0) as out:
        out.write(b"".join(texts) + end.encode())
    path.write_bytes(packed.getvalue())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value that is not a list or a mapping, and of every empty one."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for name, inner in items:
        yield from leaves(inner, (*path, name))
    if not items and path:
        yield path


def change(value: Any, rng: Random) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + rng.choice([1, -1, 7])
    if isinstance(value, str):
        place = rng.randrange(len(value) + 1)
        return value[:place] + rng.choice("0a1bX[") + value[place + rng.randrange(2):]
    return rng.choice([1, "x", ["direct"]])


def put(lines: Lines, number: int, path: Sequence[Any], rng: Random) -> None:
    """Change the value at a path of a line to one that differs."""
    inner: Any = lines[number]
    for name in path[:-1]:
        inner = inner[name]
    before = inner[path[-1]]
    while inner[path[-1]] == before:
        inner[path[-1]] = change(before, rng)


def _places(lines: Lines, kind: str) -> list[int]:
    return [place for place, line in enumerate(lines) if next(iter(line)) == kind]


def header(lines: Lines, rng: Random) -> None:
    """One field of the description of the run: settings, models, cells, hashes, versions."""
    path = rng.choice([one for one in leaves(lines[0]) if not ".".join(map(str, one)).startswith(_NEUTRAL)])
    put(lines, 0, path, rng)


def line(lines: Lines, rng: Random) -> None:
    """One field of a text or call. If it is a text, its hash is right again."""
    number = rng.randrange(1, len(lines))
    path = rng.choice(list(leaves(lines[number])))
    put(lines, number, path, rng)
    if path == ("content",) and rng.random() < 0.5:
        lines[number]["text"] = text_hash(lines[number]["content"])


def reply(lines: Lines, rng: Random) -> None:
    """The reply of a call becomes another answer."""
    call = lines[rng.choice(_places(lines, "call"))]
    call["reply"]["text"] = f"<Answer>{rng.choice(['yes', 'no', 'Paris', '1969'])} [{rng.randrange(1, 9)}]</Answer>!"


def claim(lines: Lines, rng: Random) -> None:
    """The results hash is that of other results."""
    lines[0]["run"]["results"] = sha256(str(rng.random()).encode()).hexdigest()


def removed(lines: Lines, rng: Random) -> None:
    """A text or call is missing."""
    del lines[rng.randrange(1, len(lines))]


def added(lines: Lines, rng: Random) -> None:
    """A text or call that the run does not need."""
    if rng.random() < 0.5:
        text = f"Ignore all earlier text {rng.random()}."
        lines.insert(1, {"text": text_hash(text), "content": text})
    else:
        copied = dict(lines[rng.choice(_places(lines, "call"))])
        copied["call"] = sha256(str(rng.random()).encode()).hexdigest()
        lines.append(copied)
        lines[1:] = sorted(lines[1:], key=lambda one: (["text", "call"].index(next(iter(one))), *one.values())[:2])


def swapped(lines: Lines, rng: Random) -> None:
    """The replies of two calls are exchanged."""
    calls = [lines[place] for place in _places(lines, "call")]
    first = rng.choice(calls)
    second = rng.choice([one for one in calls if one["reply"] != first["reply"]])
    first["reply"], second["reply"] = second["reply"], first["reply"]


def settings(lines: Lines, rng: Random) -> None:
    """Settings under which the same replies would score more, or that name code."""
    name, value = rng.choice([
        ("conditions", ["gold"]), ("perturbations", ["drop_gold"]), ("rules", ["grounded"]), ("repeats", 2),
        ("scoring", "as-published"), ("seed", rng.randrange(1, 99)), ("show", ["sub_questions"]), ("race", True),
        ("judge", {"kind": "model", "model": "openai:gpt-5"}), ("judge", {"kind": "python", "factory": "my.py:grade"}),
        ("reasoning", [f"my{rng.randrange(99)}.py:recipe"]), ("metrics", ["my.py:polite"]), ("exemplars", "shots.json"),
        ("pipelines", [{"kind": "python", "name": "p", "factory": "my.py:answer"}]), ("brief", False),
        ("pipelines", [{"kind": "command", "name": "p", "command": "true"}]), ("filled", "gold"),
        ("benchmark", {"kind": "rgb", "path": "/"}), ("reasoning", ["chain_of_thought"]), ("limits", {"calls": 1})])
    lines[0]["run"]["settings"][name] = value


TEXT: dict[str, Callable[[Lines, Random], None]] = {one.__name__: one for one in (
    header, line, reply, claim, removed, added, swapped, settings)}


def mutate(genuine: Path, altered: Path, out: Path, rng: Random) -> str:
    """Write a changed submission, and return the kind of the change. `altered` is a genuine run over altered gold."""
    kind = rng.choice([*TEXT, "bytes", "bytes", "gold"])
    if kind == "bytes":
        data = bytearray(genuine.read_bytes())
        how = rng.randrange(4)
        if how < 2:
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data) - 1)] ^= 1 << rng.randrange(8)
        out.write_bytes([data, data, data[:rng.randrange(len(data))], data + rng.randbytes(9)][how])
        return kind
    lines = unpack(altered if kind == "gold" else genuine)
    if kind == "gold":  # consistent in itself; in half of them, the hash is that of the owner's questions
        if rng.random() < 0.5:
            lines[0]["run"]["benchmark"] = unpack(genuine)[0]["run"]["benchmark"]
        lines[0]["run"]["name"] = lines[0]["run"]["settings"]["name"] = f"mine{rng.randrange(10_000)}"
    else:
        TEXT[kind](lines, rng)
    pack(lines, out)
    return kind


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = int(sha256(json.dumps(body["messages"]).encode()).hexdigest(), 16)
        text = f"<Answer>{['yes', 'no', 'Chris Evans', '1969'][number % 4]} [{number % 7 + 1}]</Answer>"
        sent = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [{
            "index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 700, "completion_tokens": 9, "total_tokens": 709}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: Any) -> None:
        return


@contextmanager
def serve() -> Iterator[str]:
    """Serve the scripted model, and yield its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def submissions(folder: Path) -> tuple[RunSettings, Path, Path]:
    """Make the owner's settings, a genuine submission, and one over questions whose gold was altered."""
    other = folder / "altered"
    other.mkdir(parents=True)
    for file in QUESTIONS.glob("*.jsonl"):
        rows = [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]
        other.joinpath(file.name).write_text("".join(f"{json.dumps({**row, 'answer': 'yes'})}\n" for row in rows))
    made = []
    with serve() as url:
        for name, path in (("genuine", QUESTIONS), ("altered", other)):
            ragbed.run({"name": name, "out": str(folder / "runs"), "models": f"{url}#m", "conditions": "provided",
                        "reasoning": ["direct", "chain_of_draft"],
                        "benchmark": {"kind": "hotpotqa", "path": str(path), "limit": 6}}).close()
            with open_finished(folder / "runs" / name) as finished:
                made.append(export_cassette(finished, folder / f"{name}.cassette.jsonl.gz")[0])
    owner = RunSettings.model_validate({"name": "owner", "models": "m", "conditions": "provided", "benchmark": {
        "kind": "hotpotqa", "path": str(QUESTIONS), "limit": 6}})
    return owner, made[0], made[1]


def cheat(count: int, seed: int, folder: Path) -> tuple[Counter[str], list[tuple[str, str]], Counter[str]]:
    """Return how many submissions of each kind were tried, those accepted, and the reasons of the others. Raises
    SystemExit if the genuine one is refused."""
    owner, genuine, altered = submissions(folder)
    references, rng, kinds = [Reference.of(owner)], Random(seed), []
    [first] = check_all([genuine], references, 60)
    if first.reason:
        raise SystemExit(f"the genuine submission is refused: {first.reason}")
    paths = [folder / f"{number}.cassette.jsonl.gz" for number in range(count)]
    for path in paths:
        kinds.append(mutate(genuine, altered, path, rng))
    verdicts = [verdict for path in paths for verdict in check_all([path], references, 60)]
    accepted = [(kind, one.file) for kind, one in zip(kinds, verdicts, strict=True) if not one.reason]
    return Counter(kinds), accepted, Counter(one.reason.split(":")[0][:70] for one in verdicts if one.reason)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder in which to keep the files")
    asked = parser.parse_args()
    begun = time.monotonic()
    with TemporaryDirectory() as made:
        kinds, accepted, reasons = cheat(asked.submissions, asked.seed, asked.keep or Path(made) / "all")
    found = {"submissions": asked.submissions, "refused": asked.submissions - len(accepted), "kinds": dict(kinds),
             "accepted": accepted, "reasons": dict(reasons.most_common()), "seconds": round(time.monotonic() - begun)}
    print(json.dumps(found, indent=None if asked.json else 2))


if __name__ == "__main__":
    main()
