"""Measure what serving costs when the model costs nothing: concurrent streams via `ragbed serve` and to the bare model.

    python bench/serve.py [--streams 200] [--rounds 3] [--langgraph FOLDER/bin/langgraph]
    python bench/serve.py --hostile 20 [--rounds 3]

The script starts a model server that streams a short cited answer at once. In every round each contestant gets the same
questions, all at once. The ratios are medians of each round's ratio to the bare model server: of the median time to
the first text, and of the time until the last stream has ended. For ragbed the script also counts the records.
LangGraph's own server takes part if its command is given: it runs one node with one call.

`--hostile SECONDS` measures what a hostile client does to others. Each round has two parts of this length. In both, a
few clients ask one question after another. In the second part, another client also requests PDF pages that never finish
drawing, and sends questions of 200 kB.
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp

HERE = Path(__file__).parent
PAGES = {"lyon.txt": "Lyon lies where the Saône meets the Rhône.", "oslo.txt": "Oslo lies on a fjord."}
STARTING = 20  # seconds until the second of two workers accepts connections
CLIENTS, ENDLESS = 8, 40  # clients that ask; files that are drawn once each
GRAPH = """
import os
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

model = ChatOpenAI(model="m", base_url=os.environ["MODEL_URL"], api_key="none", streaming=True)

async def answer(state):
    return {"messages": [await model.ainvoke(state["messages"])]}

built = StateGraph(MessagesState)
built.add_node("answer", answer)
built.add_edge(START, "answer")
built.add_edge("answer", END)
graph = built.compile()
"""


def main() -> None:
    options = _options()
    rounds: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, _started([sys.executable, HERE / "instant_server.py"]) as (_, model):
        place = Path(folder)
        env = {**os.environ, "MODEL_URL": model, "RAGBED_CACHE": str(place / "cache"), "PYTHONPATH": f"{HERE.parent}"}
        for name, text in PAGES.items():
            (place / name).write_text(text)
        for number in range(ENDLESS if options.hostile else 0):
            (place / f"endless{number}.pdf").write_bytes(_endless_pdf(number))
        files = sorted((*place.glob("*.txt"), *place.glob("*.pdf")))
        subprocess.run([sys.executable, "-m", "ragbed", "index", *files,
                        "--out", place / "index"], env=env, check=True, capture_output=True)
        if options.hostile:
            with _started(_command(place, model, "traffic"), env) as (_, url):
                _show_hostile(url, options)
            return
        with contextlib.ExitStack() as running:
            ours, url = running.enter_context(_started(_command(place, model, "traffic"), env))
            contestants = {"model server": (model, None), "ragbed serve": (f"{url}/v1", ours)}
            workers, url = running.enter_context(_started([*_command(place, model, "workers"), "--workers", "2"], env))
            contestants["two workers"] = (f"{url}/v1", workers)
            time.sleep(STARTING)
            if options.langgraph:
                theirs, url = running.enter_context(_langgraph(options.langgraph, place, env))
                contestants["langgraph dev"] = (url, theirs)
            for turn in range(-1, options.rounds):  # the first warms all up, and does not count
                for name, (url, _) in contestants.items():
                    taken = asyncio.run(_load(url, options.streams if turn >= 0 else 8, turn, name.endswith("dev")))
                    if turn >= 0:
                        rounds.setdefault(name, []).append(taken)
            memory = {name: _memory(process.pid) for name, (_, process) in contestants.items() if process}
        _show(options, rounds, memory, _records(place / "traffic"))


def _command(place: Path, model: str, traffic: str) -> list[object]:
    return [sys.executable, "-m", "ragbed", "serve", place / "index", "--model", f"{model}#m", "--reasoning", "direct",
            "--retriever", "bm25", "-k", "2", "--traffic", place / traffic, "--concurrency", "256", "--port", "0",
            "--log", "off"]


async def _load(url: str, streams: int, turn: int, langgraph: bool) -> list[float]:
    """Seconds to the first text of each stream, then to its end, the first half and the second of what is returned;
    raises where one has an error or no end."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0),
                                     timeout=aiohttp.ClientTimeout(300)) as session:
        async def one(number: int) -> tuple[float, float]:
            message = {"role": "user", "content": f"{turn}-{number}: which town lies where the Saône meets the Rhône?"}
            body = {"model": "direct", "stream": True, "messages": [message]}
            path = "/chat/completions"
            if langgraph:
                path, body = "/runs/stream", {"assistant_id": "graph", "input": {"messages": [message]},
                                              "stream_mode": ["messages-tuple"]}
            begun, first, said = time.perf_counter(), None, b""
            async with session.post(url + path, json=body) as response:
                assert response.status == 200, await response.text()
                async for line in response.content:
                    said += line
                    if first is None and b"Lyon" in line:
                        first = time.perf_counter() - begun
            assert first is not None, said[-500:]
            assert b"error" not in said, said[-500:]
            assert langgraph or said.endswith(b"data: [DONE]\n\n"), said[-500:]
            return first, time.perf_counter() - begun

        return [each for pair in zip(*await asyncio.gather(*map(one, range(streams))), strict=True) for each in pair]


def _show_hostile(url: str, options: argparse.Namespace) -> None:
    times: dict[str, list[float]] = {"alone": [], "disturbed": []}
    statuses: Counter[str] = Counter()
    unseen = iter(range(ENDLESS))
    for turn in range(-1, options.rounds):  # the first warms all up, and does not count
        for name, kept in times.items():
            seconds = options.hostile if turn >= 0 else 3
            taken = asyncio.run(_ask_on(url, seconds, statuses, unseen if name == "disturbed" else None))
            kept += taken if turn >= 0 else []
    print(f"{CLIENTS} clients, {options.rounds} rounds of {options.hostile} seconds, {os.cpu_count()} cores; the other "
          f"client got {dict(statuses)}")
    p95 = {name: statistics.quantiles(kept, n=20)[-1] for name, kept in times.items()}
    for name, kept in times.items():
        print(f"{name:10} {len(kept):6} answers   p50 {1000 * statistics.median(kept):6.0f} ms   "
              f"p95 {1000 * p95[name]:6.0f} ms")
    print(f"p95 changes by {p95['disturbed'] / p95['alone'] - 1:+.0%}")


async def _ask_on(url: str, seconds: float, statuses: Counter[str], unseen: Iterator[int] | None) -> list[float]:
    """Return the seconds of the clients' answers; with numbers of files that were not drawn yet, while another client
    is hostile."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(300)) as session:
        async def ask(client: int) -> None:
            while (begun := time.perf_counter()) < end:
                body = _question(f"{client} at {begun}: which town lies where the Saône meets the Rhône?")
                async with session.post(f"{url}/v1/chat/completions", json=body) as response:
                    assert response.status == 200
                    assert b"Lyon" in await response.read()
                taken.append(time.perf_counter() - begun)
                await asyncio.sleep(0.1)

        async def draw() -> None:
            from ragbed.documents.types import digest

            for number in unseen or ():
                async with session.get(f"{url}/documents/{digest(f'endless{number}.pdf')}/pages/1.png") as response:
                    statuses[f"page {response.status}"] += 1
                if time.perf_counter() > end:
                    return

        async def ask_much() -> None:
            while unseen and time.perf_counter() < end:
                async with session.post(f"{url}/v1/chat/completions", json=_question("Rhône " * 33_000)) as response:
                    statuses[f"question {response.status}"] += 1
                await asyncio.sleep(1)

        others = [asyncio.ensure_future(one) for one in (draw(), ask_much())]
        await asyncio.gather(*map(ask, range(CLIENTS)))
        await asyncio.gather(*others)
    return taken


def _question(text: str) -> dict[str, object]:
    return {"model": "direct", "stream": True, "messages": [{"role": "user", "content": text}]}


def _endless_pdf(number: int) -> bytes:
    """Return a page whose pattern is filled with a pattern, which is filled with a pattern, and so on."""
    def stream(entries: str, data: str) -> str:
        return f"<< {entries} /Length {len(data)} >>\nstream\n{data}\nendstream"

    fill = "/Pattern cs /P scn 0 0 595 842 re f "
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << "
               "/Font << /H 5 0 R >> /Pattern << /P 6 0 R >> >> >>",
               stream("", f"BT /H 11 Tf 72 700 Td (Page {number} has no end.) Tj ET {fill}"),
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
               *(stream("/PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 99 99] /XStep .01 /YStep .01 /Resources "
                        f"<< /Pattern << /P {inner} 0 R >> >>", fill * 9) for inner in range(7, 12))]
    body = "".join(f"{place} 0 obj\n{text}\nendobj\n" for place, text in enumerate(objects, 1))
    return f"%PDF-1.7\n{body}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n%%EOF\n".encode()


@contextlib.contextmanager
def _started(command: list[object], env: dict[str, str] | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    running = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                               text=True, env=env)
    try:
        assert running.stdout is not None
        yield running, next(found[0] for line in running.stdout
                            if (found := re.search(r"http://[\d.]+:\d+(/v1)?", line)))
    finally:
        running.terminate()
        running.communicate()


@contextlib.contextmanager
def _langgraph(command: str, folder: Path, env: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    (folder / "graph.py").write_text(GRAPH)
    (folder / "langgraph.json").write_text(json.dumps({"graphs": {"graph": "./graph.py:graph"}, "dependencies": ["."]}))
    url = "http://127.0.0.1:2924"
    running = subprocess.Popen([command, "dev", "--port", "2924", "--no-browser", "--no-reload", "--n-jobs-per-worker",
                                "256"], cwd=folder, env=env | {"LANGSMITH_TRACING": "false"},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while subprocess.run(["curl", "-fs", f"{url}/ok"], capture_output=True).returncode:
            assert time.monotonic() < end, "langgraph dev does not start"
            time.sleep(0.5)
        yield running, url
    finally:
        running.terminate()
        running.wait()


def _memory(pid: int) -> float:
    """Resident memory of a process in MB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def _records(traffic: Path) -> int:
    from ragbed.experiments.guests.traffic.traffic_runs import runs_of
    from ragbed.experiments.runs.store import RunFolder

    with contextlib.closing(RunFolder.existing(*runs_of(traffic))) as run:
        return sum(record.result.outcome == "answered" for record in run.records())


def _show(options: argparse.Namespace, rounds: dict[str, list[list[float]]], memory: dict[str, float],
          records: int) -> None:
    asked = options.streams * options.rounds + 8
    print(f"{options.streams} streams at once, {options.rounds} rounds, {os.cpu_count()} cores; "
          f"records: {records} of {asked}")
    bare = [max(one[options.streams:]) for one in rounds["model server"]]
    for name, taken in rounds.items():
        firsts = sorted(each for one in taken for each in one[:options.streams])
        wholes = sorted(each for one in taken for each in one[options.streams:])
        ratio = statistics.median(max(one[options.streams:]) / base for one, base in zip(taken, bare, strict=True))
        first = statistics.median(statistics.median(one[:options.streams]) / statistics.median(base[:options.streams])
                                  for one, base in zip(taken, rounds["model server"], strict=True))
        figures = "  ".join(f"{at:7.0f}" for at in (1000 * values[int(share * len(values))]
                                                    for values in (firsts, wholes) for share in (0.5, 0.95)))
        print(f"{name:14} first p50, p95, whole p50, p95 (ms): {figures}   ratio {first:5.1f}, {ratio:5.1f}   "
              f"{memory.get(name, 0):5.0f} MB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--langgraph", help="the command of LangGraph's own server")
    parser.add_argument("--hostile", type=float, help="seconds of each measurement beside a hostile client")
    return parser.parse_args()


if __name__ == "__main__":
    main()
