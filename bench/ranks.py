"""Whether a set ranks ways of answering as another one does: Kendall's tau of two runs' cells, with its interval.

    python bench/ranks.py runs/constructed runs/hotpotqa [--metric em]
    python bench/ranks.py --graded 'computed: {path: set}' 'hotpotqa: {path: tests/data/hotpotqa_195}' [--limit 100]

The runs need the same cells by name. The interval is the percentile bootstrap's over the questions of both.

With `--graded` both sets are asked of five scripted readers, who know the answers to 30, 45, 60, 75 and 90 of a hundred
questions and say another question's answer to the rest. What they show is that a set tells readers of known ability
apart in their order, and with how many questions; they are no real models.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from aiohttp import web
from chat_server import completion, serve
from scipy.stats import kendalltau

from ragbed.documents.types import digest
from ragbed.experiments import check_settings, open_run, run

ABILITIES = (30, 45, 60, 75, 90)
_DRAWS = 2_000


def scores(path: Path, metric: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return the scores of each cell, by its name, in the order of the questions; 0 where the metric does not apply."""
    with open_run(path) as finished:
        table = finished.frame()
    wide = table.pivot_table(index="question", columns="cell_name", values=f"score.{metric}", dropna=False).fillna(0.0)
    return {str(name).split(", ")[0]: wide[name].to_numpy() for name in wide.columns}


def tau(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return Kendall's tau-b of the cells' means, and its 95 % interval over draws of both sets' questions."""
    names = sorted(one.keys() & other.keys())
    if len(names) < 3:
        sys.exit(f"the runs share {len(names)} cells by name; at least 3 are needed")
    pair = [np.stack([scored[name] for name in names]) for scored in (one, other)]
    rng, drawn = np.random.default_rng(0), []
    for _ in range(_DRAWS):
        means = [each[:, rng.integers(0, each.shape[1], each.shape[1])].mean(axis=1) for each in pair]
        drawn.append(kendalltau(*means).statistic)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return {"tau": float(kendalltau(*(each.mean(axis=1) for each in pair)).statistic), "low": float(low),
            "high": float(high), "questions": [each.shape[1] for each in pair],
            "cells": {name: [float(each[place].mean()) for each in pair] for place, name in enumerate(names)}}


async def readers(known: Mapping[str, Sequence[str]]) -> None:
    """Serve the graded readers: `able-N` knows the answer where a hash of the question says so."""
    others = [answers[0] for answers in known.values()]

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        said = body["messages"][-1]["content"]
        question = max((one for one in known if one in said), key=len)
        luck = int(digest(question)[:8], 16) % 100
        wrong = next(one for one in others[luck % len(others):] + others if one not in known[question])
        text = known[question][0] if luck < int(body["model"].split("-")[1]) else wrong
        return web.json_response(completion(body["model"], {"role": "assistant", "content": f"{text} [1]"}, 1, 1))

    await serve(chat)


def graded(benchmarks: Sequence[str], limit: int, folder: Path) -> list[Path]:
    """Run both benchmarks with the readers; return the runs' folders."""
    made = []
    for number, text in enumerate(benchmarks):
        (kind, fields), = yaml.safe_load(text).items()
        benchmark = {"kind": kind, **fields, "limit": limit}
        settings = {"benchmark": benchmark, "reasoning": "direct", "conditions": "given", "out": str(folder),
                    "name": f"graded-{number}"}
        planned = check_settings({**settings, "models": ["http://127.0.0.1:9/v1#none"]}, text)
        known = {one.text: [dict(one.options).get(answer, answer) for answer in one.answers]
                 for one in planned.benchmark.load().questions if one.answerable}
        server = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(known) + "\n")
        server.stdin.flush()
        url = server.stdout.readline().strip()
        run({**settings, "models": [f"{url}#able-{ability}" for ability in ABILITIES]}, fresh=True).close()
        server.stdin.close()
        server.wait()
        made.append(folder / f"graded-{number}")
    return made


def main() -> None:
    """Print tau of two runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", help="two runs, or with --graded two benchmarks")
    parser.add_argument("--metric", default="em")
    parser.add_argument("--graded", action="store_true")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(readers(json.loads(sys.stdin.readline())))
        return
    if len(given.sets) != 2:
        parser.error("name two")
    with tempfile.TemporaryDirectory() as folder:
        runs = graded(given.sets, given.limit, Path(folder)) if given.graded else [Path(one) for one in given.sets]
        one, other = (scores(path, given.metric) for path in runs)
    if given.graded:  # the port is another
        one, other = ({name.rpartition("#")[2]: values for name, values in each.items()} for each in (one, other))
    found = tau(one, other)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, means in found["cells"].items():
        print(f"{name:30} {means[0]:.2f}  {means[1]:.2f}")
    counts = " and ".join(map(str, found["questions"]))
    print(f"Kendall's tau {found['tau']:.2f} [{found['low']:.2f}, {found['high']:.2f}] over {counts} questions")


if __name__ == "__main__":
    main()
