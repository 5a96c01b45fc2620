"""Measure the cost and the scores of every strategy on MuSiQue and HotpotQA, as a Markdown table.

    python bench/every_strategy.py --data FOLDER [--questions 20] [--model NAME] [--strategies NAME,...]

FOLDER holds `hotpotqa/hotpot_distractor_100.jsonl` and `musique/musique.jsonl`. Every reasoning strategy runs over one
search, and every retrieval strategy before a direct answer. Each question searches its own paragraphs, four per search
(dense, MiniLM). Without --model, the scripted reader of `reading_server.py` answers in another process: `ms` is then
ragbed's own processor time per question, and the scores do not tell how good a strategy is. With a model, `s` is
seconds per question.
"""
from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import fmean
from typing import Any

from ragbed.experiments import check_settings
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.finished import open_finished
from ragbed.strategies import REASONING, RETRIEVAL
from ragbed.strategies.catalogue import SEARCH_ONLY

FILES = {"hotpotqa": "hotpotqa/hotpot_distractor_100.jsonl", "musique": "musique/musique.jsonl"}
_EXAMPLE = '{"question": "Which mill is older, the north or the south mill?", "answer": "The north mill", ' \
    '"reasoning": "The north mill is of 1871, the south mill of 1880."}\n'
_HEADER = ("strategy", "calls", "searches", "prompt tokens", "reply tokens")


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder, (nullcontext(options.model) if options.model else _reader()) as model:
        example = Path(folder) / "example.jsonl"
        example.write_text(_EXAMPLE, encoding="utf-8")
        chosen = list(_strategies(str(example), options.strategies))
        for kind, file in FILES.items():
            rows = [_row(said, kind, Path(options.data) / file, model, Path(folder), options) for said in chosen]
            print(f"\n{kind}, {options.questions} questions, {'the scripted reader' if not options.model else model}\n")
            print(_table(rows, "s" if options.model else "ms"), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--model", help="a model, as for `ragbed run`; by default the scripted reader")
    parser.add_argument("--strategies", help="comma-separated names; all by default")
    parser.add_argument("--max-tokens", type=int, default=128)
    return parser.parse_args()


@contextmanager
def _reader() -> Iterator[str]:
    """The scripted reader as a model's name."""
    with subprocess.Popen([sys.executable, Path(__file__).parent / "reading_server.py"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"{server.stdout.readline().strip()}#reader"


def _strategies(example: str, names: str | None) -> Iterator[tuple[Any, Any]]:
    """Reasoning and retrieval of every row: one of the two varies."""
    needs = {"few_shot": {"kind": "few_shot", "name": "few_shot", "exemplars": example}}
    wanted = names.split(",") if names else [*REASONING, *RETRIEVAL]
    for name in wanted:
        if name in REASONING and name != SEARCH_ONLY:
            yield needs.get(name, name), "once"
        elif name in RETRIEVAL and name != "once":
            yield "direct", name


def _row(said: tuple[Any, Any], kind: str, file: Path, model: str, folder: Path,
         options: argparse.Namespace) -> list[str]:
    reasoning, retrieval = said
    name = reasoning["kind"] if isinstance(reasoning, dict) else reasoning
    label = name if retrieval == "once" else f"direct, {retrieval}"
    settings = check_settings({
        "name": f"{kind}-{name}-{retrieval}", "out": str(folder), "models": model, "reasoning": reasoning,
        "retrieval": retrieval, "benchmark": {"kind": kind, "path": str(file), "sample": options.questions},
        "conditions": "retrieved", "retriever": {"kind": "dense", "k": 4},
        "limits": {"max_tokens": options.max_tokens}}, label)
    nothing = RunCallbacks(lambda stage, done, total: None, lambda begun: None, lambda record: None)
    begun = time.process_time()
    asyncio.run(run(settings, nothing)).close()
    taken = time.process_time() - begun
    with open_finished(settings.folder) as finished:
        records = list(finished.folder.records(traces=True))
        metrics = finished.rows[0]["metrics"]
    each = [(one.result.usage, sum(step.kind == "search" for step in one.result.trace)) for one in records]
    seconds = fmean(one.timing.seconds for one in records) if options.model else 1000 * taken / len(records)
    outcomes = [one.result.outcome for one in records]
    ended = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes) if name != "answered")
    return [label, *(f"{fmean(values):,.1f}" for values in (
        [usage.calls for usage, _ in each], [count for _, count in each], [usage.prompt_tokens for usage, _ in each],
        [usage.completion_tokens for usage, _ in each])), f"{seconds:,.1f}",
        *(_figure(metrics.get(metric)) for metric in ("f1", "support_f1")), ended]


def _figure(value: Any) -> str:
    if not value or value["mean"] is None:
        return "-"
    return f"{value['mean']:.2f} [{value['low']:.2f}, {value['high']:.2f}]"


def _table(rows: Sequence[Sequence[str]], unit: str) -> str:
    header = [*_HEADER, unit, "answer F1", "support F1", "not answered"]
    return "\n".join(["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)])


if __name__ == "__main__":
    main()
