"""Ask the same questions through four harnesses; each runs in its own process and measures itself.

    python bench/contestants.py NAME URL QUESTIONS [AT_ONCE [STRATEGY]]

Every harness asks each question with its five documents in one chat call, 32 at once by default, extracts the answer
from the reply and compares it. ragbed does this in a complete run: with graph, journal, records and all metrics.
"""
from __future__ import annotations

import asyncio
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from instant_server import CITY

if TYPE_CHECKING:
    from ragbed.experiments import RunSettings

AT_ONCE = int((*sys.argv[4:], 32)[0])
STRATEGY = (*sys.argv[5:], "direct")[0]  # of ragbed; the others make one call for a question
PROMPTFOO = os.environ.get("RAGBED_PROMPTFOO", "promptfoo")  # its command
WARM_UP = 64
_FILLER = "The party kept a log of wind, ice and stores, and the harbour master copied it every evening. " * 5
_INSTRUCTION = "Answer from the documents only and cite them as [n]. Put the answer into <Answer> tags."
_ANSWER = re.compile(r"<Answer>(.*?)</Answer>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a number of questions took, start-up apart: seconds of processor (user and system) and of clock, peak
    memory in MB, before and after, and the seconds of the fastest question of the slowest tenth."""

    processor: float
    clock: float
    before: float = 0.0
    memory: float = 0.0
    slowest: float = math.nan


def question(number: int) -> str:
    return f"In which city did expedition {number} spend the winter?"


def documents(number: int) -> list[str]:
    """Five documents of about 530 characters, the question's own."""
    return [f"Expedition {number}, volume {volume}. {_FILLER}It wintered in {CITY}." for volume in range(1, 6)]


def prompt(number: int) -> str:
    shown = "\n\n".join(f"[{place}]\n{text}" for place, text in enumerate(documents(number), 1))
    return f"Documents:\n\n{shown}\n\n{_INSTRUCTION}\n\nQuestion: {question(number)}"


def is_right(reply: str) -> bool:
    """Whether the answer in the reply, its citations removed, is the expected one."""
    found = _ANSWER.search(reply)
    return found is not None and re.sub(r"\s*\[\d+\]", "", found[1]).strip() == CITY


def openai_client(url: str, questions: int) -> Taken:
    """The client alone."""
    from openai import AsyncOpenAI
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def ask(number: int) -> bool:
        messages: Any = [{"role": "user", "content": prompt(number)}]
        reply = await client.chat.completions.create(model="instant", temperature=0, messages=messages)
        return is_right(reply.choices[0].message.content or "")

    return asyncio.run(_timed(ask, questions))


class _State(TypedDict, total=False):
    number: int
    prompt: str
    reply: str
    right: bool


def langgraph_loop(url: str, questions: int) -> Taken:
    """A graph of three nodes over ChatOpenAI that keeps nothing."""
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, StateGraph
    from pydantic import SecretStr
    model = ChatOpenAI(base_url=url, api_key=SecretStr("none"), model="instant", temperature=0, max_retries=0)

    async def gather(state: _State) -> _State:
        return {"prompt": prompt(state["number"])}

    async def generate(state: _State) -> _State:
        return {"reply": str((await model.ainvoke([("user", state["prompt"])])).content)}

    async def compare(state: _State) -> _State:
        return {"right": is_right(state["reply"])}

    graph = StateGraph(_State)
    graph.add_node("gather", gather)
    graph.add_node("generate", generate)
    graph.add_node("compare", compare)
    for one, next_one in ((START, "gather"), ("gather", "generate"), ("generate", "compare"), ("compare", END)):
        graph.add_edge(one, next_one)
    compiled = graph.compile()

    async def ask(number: int) -> bool:
        return bool((await compiled.ainvoke({"number": number}))["right"])

    return asyncio.run(_timed(ask, questions))


def inspect_ai(url: str, questions: int) -> Taken:
    """Inspect AI with its log, after a short evaluation that warms up."""
    os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="none", INSPECT_DISPLAY="none")
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    def evaluate(first: int, count: int, folder: str) -> None:
        samples = [Sample(input=prompt(number), target=CITY) for number in range(first, first + count)]
        [log] = eval(Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes()),
                     model="openai/gpt-4o-mini", model_args={"responses_api": False}, log_dir=folder,
                     max_connections=AT_ONCE, max_samples=AT_ONCE, display="none")
        assert log.status == "success", log.error

    with tempfile.TemporaryDirectory() as folder:
        evaluate(questions, WARM_UP, folder)
        with _measure() as taken:
            evaluate(0, questions, folder)
    return taken[0]


def promptfoo(url: str, questions: int) -> Taken:
    """promptfoo with its database and one assertion, less what an evaluation of one question takes."""
    with tempfile.TemporaryDirectory() as folder:
        once, whole = (_promptfoo(url, count, Path(folder)) for count in (1, questions))
    return Taken(whole.processor - once.processor, whole.clock - once.clock, once.memory, whole.memory)


def _promptfoo(url: str, questions: int, folder: Path) -> Taken:
    config = folder / "config.json"
    config.write_text(json.dumps({
        "prompts": ["{{asked}}"],
        "providers": [{"id": "openai:chat:instant", "config": {"apiBaseUrl": url, "apiKey": "none", "temperature": 0}}],
        "tests": [{"vars": {"asked": prompt(number)}, "assert": [{"type": "contains", "value": CITY}]}
                  for number in range(questions)]}))
    quiet = {f"PROMPTFOO_{name}": "1" for name in ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION")}
    begun = _now()
    subprocess.run([PROMPTFOO, "eval", "-c", config, "-j", str(AT_ONCE), "--no-cache", "--no-table",
                    "--no-progress-bar"], env={**os.environ, **quiet, "PROMPTFOO_CONFIG_DIR": str(folder)}, check=True,
                   stdout=sys.stderr)
    taken = _since(begun)
    return replace(taken, memory=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000)


def ragbed(url: str, questions: int) -> Taken:
    """A run in mode `record`."""
    return _ragbed(url, questions, replayed=False)


def ragbed_replay(url: str, questions: int) -> Taken:
    """The same run's records made anew from its journal."""
    return _ragbed(url, questions, replayed=True)


def ragbed_command(url: str, questions: int) -> Taken:
    """The command `ragbed run` with all of its processes, start-up included."""
    with tempfile.TemporaryDirectory() as folder:
        settings = _run_settings(url, Path(folder) / "timed", range(questions))
        (Path(folder) / "run.yaml").write_text(settings.to_yaml(), encoding="utf-8")
        begun = _now()
        subprocess.run([sys.executable, "-m", "ragbed", "run", Path(folder) / "run.yaml"], check=True,
                       stdout=sys.stderr)
        return _since(begun)


def _ragbed(url: str, questions: int, replayed: bool) -> Taken:
    with tempfile.TemporaryDirectory() as folder:
        warm = _run_settings(url, Path(folder) / "warm", range(questions, questions + WARM_UP))
        settings = _run_settings(url, Path(folder) / "timed", range(questions))
        _run(warm, replayed=False)
        taken = _run(settings, replayed=False)
        if replayed:
            _run(warm, replayed=True)
            taken = _run(settings, replayed=True)
    return taken


def _run_settings(url: str, folder: Path, numbers: range) -> RunSettings:
    from ragbed.experiments import check_settings
    folder.mkdir()
    path = folder / "non_refusal.jsonl"
    path.write_text("".join(json.dumps(_crest_row(number)) + "\n" for number in numbers), encoding="utf-8")
    return check_settings({
        "name": "run", "out": str(folder), "benchmark": {"kind": "crest", "path": str(path)},
        "models": f"{url}#instant", "reasoning": STRATEGY, "layout": "documents_first", "conditions": "provided",
        "judge": "lexical", "concurrency": AT_ONCE}, "bench")


def _crest_row(number: int) -> dict[str, Any]:
    records = [{"docid": place, "content": text, "type": "text", "source_path": f"{number}/{place}.txt",
                "ground": place == 1, "citation_idx": None} for place, text in enumerate(documents(number), 1)]
    return {"id": number, "query": question(number), "answer": CITY, "documents": json.dumps(records),
            "citation_ids": "[1]", "meta": json.dumps({"language": "en", "difficulty_type": "SimpleQA"})}


def _run(settings: RunSettings, replayed: bool) -> Taken:
    """From the first question's start to the written summary."""
    from ragbed.experiments.running.runner import RunCallbacks, run
    begun: list[tuple[float, float, float]] = []
    seconds: list[float] = []
    watch = RunCallbacks(stage=lambda *_: None, started=lambda _: begun.append(_now()),
                         record=lambda record: seconds.append(record.timing.seconds))
    folder = asyncio.run(run(settings, watch, "replay" if replayed else "record", again=replayed))
    taken = _since(begun[0], seconds)
    try:
        [cell] = folder.summary()["cells"]
        assert cell["metrics"]["correct"]["mean"] == cell["metrics"]["citation_f1"]["mean"] == 1.0, cell
    finally:
        folder.close()
    return taken


async def _timed(ask: Callable[[int], Awaitable[bool]], questions: int) -> Taken:
    """Ask all questions, so many at once, after others that warm up."""
    seconds: list[float] = []

    async def drain(numbers: Iterator[int]) -> None:
        for number in numbers:
            asked = time.perf_counter()
            assert await ask(number)
            seconds.append(time.perf_counter() - asked)

    async def all_of(numbers: range) -> None:
        shared = iter(numbers)
        await asyncio.gather(*(drain(shared) for _ in range(AT_ONCE)))

    await all_of(range(questions, questions + WARM_UP))
    seconds.clear()
    begun = _now()
    await all_of(range(questions))
    return _since(begun, seconds)


@contextmanager
def _measure() -> Iterator[list[Taken]]:
    taken: list[Taken] = []
    begun = _now()
    yield taken
    taken.append(_since(begun))


def _now() -> tuple[float, float, float]:
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    used = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return used, time.perf_counter(), own.ru_maxrss / 1000


def _since(begun: tuple[float, float, float], seconds: Sequence[float] = ()) -> Taken:
    processor, clock, memory = _now()
    slowest = sorted(seconds)[len(seconds) * 9 // 10] if seconds else math.nan
    return Taken(processor - begun[0], clock - begun[1], begun[2], memory, slowest)


CONTESTANTS: dict[str, Callable[[str, int], Taken]] = {
    one.__name__: one for one in (
        openai_client, langgraph_loop, inspect_ai, promptfoo, ragbed, ragbed_command, ragbed_replay)}

if __name__ == "__main__":
    name, url, count = sys.argv[1:4]
    print(json.dumps(asdict(CONTESTANTS[name](url, int(count)))))
