"""Measure how well the support checks agree with people.

    python bench/sentence_support.py DATA [--support CHECK] [--only SET] [--words N] [--most N] [--journal FILE]

SciFact tests a sentence against what it cites: people judged whether an abstract supports a scientific claim,
contradicts it, or says too little. ClapNQ tests nuggets: people marked the sentences of a passage from which an answer
was then written, so each sentence of the passage is a nugget that the answer contains or not. An answer may leave out a
part of a marked sentence, so the level `partial` is right for these too.

CHECK is a value of `ragbed rescore --support`. `--words` leaves out evidence of more than N words. `--most` uses at
most N pairs of each label, evenly spread. `--journal` keeps a model's replies, so that rerunning the command does not
ask for them again.
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragbed.agents.database import Database
from ragbed.agents.journal import SCHEMA, Journal, Model
from ragbed.agents.model_settings import CallLimits, ModelSettings
from ragbed.agents.models import open_model
from ragbed.experiments.guests.answer_support.statements import Statement
from ragbed.experiments.guests.answer_support.support_checks import (
    Claims,
    ModelSupport,
    SupportCheck,
    ask_support,
    parse_support,
)
from ragbed.experiments.guests.label_correction.agreement import cohen_kappas
from ragbed.experiments.metrics.intervals import wilson

RESAMPLES, LEVELS = 1000, ("full", "partial", "none", "unread")


class Item(NamedTuple):
    """What is checked, and what people said of it."""

    claims: Claims
    people: str
    group: str  # the claim or the question, of which resamples are drawn


def rows(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def scifact(data: Path) -> Iterator[Item]:
    """Each claim with each abstract that it cites."""
    folder = data / "scifact"
    texts = {row["_id"]: f"{row['title']}\n{row['text']}" for row in rows(folder / "corpus.jsonl")}
    cited = defaultdict(list)
    for file in ("train", "test"):
        with (folder / "qrels" / f"{file}.tsv").open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                cited[row["query-id"]].append(row["corpus-id"])
    for row in rows(folder / "queries.jsonl"):
        said = {one["doc_id"]: one["label"] for one in row["metadata"]["evidence"]}
        for abstract in cited[row["_id"]]:
            yield Item(Claims("Is this so?", (Statement(row["text"], (1,)),), {1: texts[abstract]}),
                       {"SUPPORT": "supports", "CONTRADICT": "contradicts"}.get(said.get(abstract, ""), "too little"),
                       row["_id"])


def clapnq(data: Path) -> Iterator[Item]:
    """Each sentence of each passage with the answer."""
    for row in rows(data / "clapnq" / "clapnq_dev_answerable.jsonl"):
        output = row["output"][0]
        for sentence in row["passages"][0]["sentences"]:
            if sentence.strip():
                marked = sentence in output["selected_sentences"]
                yield Item(Claims(row["input"], answer=output["answer"], nuggets={sentence: marked}),
                           "marked" if marked else "not marked", row["id"])


# With the label that means support.
SETS = {"scifact": (scifact, "supports"), "clapnq": (clapnq, "marked")}


def text_of(item: Item) -> str:
    """What the statement is checked against."""
    return item.claims.answer or item.claims.passages[1]


def spread(items: Sequence[Item], most: int | None) -> list[Item]:
    """At most so many of each of the people's labels, evenly spread, the labels in turn."""
    chosen = []
    for label in dict.fromkeys(item.people for item in items):
        own = [item for item in items if item.people == label]
        step = max(1.0, len(own) / (most or len(own)))
        chosen.append([own[int(place * step)] for place in range(min(len(own), most or len(own)))])
    return [item for turn in zip_longest(*chosen) for item in turn if item is not None]


async def levels_of(items: Sequence[Item], check: SupportCheck, model: Model | None) -> list[str]:
    """The level that the check gives each, or `unread`."""
    found = []
    for item in items:
        judged = await ask_support(check, model, item.claims, lambda: time.monotonic() + 900)
        assert judged.end is not None
        label, = (*judged.end.sentences, *judged.end.nuggets)
        found.append(label.level or "unread")
    return found


def shift(items: Sequence[Item], weights: Sequence[float], right: str) -> tuple[float, float, float]:
    """By how much the mean weight of the check lies above the share that people support; percentiles over resamples of
    groups."""
    sums = defaultdict(lambda: np.zeros(2))
    for item, weight in zip(items, weights, strict=True):
        sums[item.group] += weight - (item.people == right), 1
    every = np.stack(list(sums.values()))
    draws = np.random.default_rng(0).integers(len(every), size=(RESAMPLES, len(every)))
    drawn = every[draws].sum(axis=1)
    total, count = every.sum(axis=0)
    return float(total / count), *map(float, np.percentile(drawn[:, 0] / drawn[:, 1], (2.5, 97.5)))


def agreement(items: Sequence[Item], supported: Sequence[bool], right: str) -> dict[str, Any]:
    """How far two labels agree: shares with Wilson's intervals, kappa with percentiles over resamples of groups. What
    was not read is taken for no support."""
    people = [item.people == right for item in items]
    tables = defaultdict(lambda: np.zeros((2, 2)))
    for item, one, other in zip(items, people, supported, strict=True):
        tables[item.group][int(one), int(other)] += 1
    every = np.stack(list(tables.values()))
    draws = np.random.default_rng(0).integers(len(every), size=(RESAMPLES, len(every)))
    drawn = np.stack([every[draw].sum(axis=0) for draw in draws])
    whole = every.sum(axis=0)

    def share(part: float, total: float) -> tuple[float, float, float]:
        return part / total, *wilson(part / total, total)

    return {"agree": share(whole[0, 0] + whole[1, 1], whole.sum()),
            "kappa": (float(cohen_kappas(whole[None], False)[0]), *np.nanpercentile(cohen_kappas(drawn, False), (2.5,
                                                                                                                 97.5))),
            "missed": share(whole[1, 0], whole[1].sum()), "false": share(whole[0, 1], whole[0].sum())}


def report_of(items: Sequence[Item], levels: Sequence[str], right: str) -> dict[str, Any]:
    """The confusion of people's labels with levels, and the agreement where full, or any, support counts."""
    confusion = {label: [sum(item.people == label and level == one for item, level in zip(items, levels, strict=True))
                         for one in LEVELS] for label in dict.fromkeys(item.people for item in items)}
    weights = [{"full": 1.0, "partial": 0.5}.get(level, 0.0) for level in levels]
    return {"n": len(items), "groups": len({item.group for item in items}), "confusion": confusion,
            "mean weight": float(np.mean(weights)), "off": shift(items, weights, right),
            "full": agreement(items, [level == "full" for level in levels], right),
            "full or partial": agreement(items, [level in LEVELS[:2] for level in levels], right)}


def show(name: str, report: dict[str, Any]) -> None:
    """The report, to be read."""
    print(f"{name}: {report['n']} pairs of {report['groups']} groups; full / partial / none / unread:")
    for label, counts in report["confusion"].items():
        print(f"  {label}: {' / '.join(map(str, counts))}")
    print("  mean weight {:.2f}, above the share that people support by {:+.2f} [{:+.2f}, {:+.2f}]".format(
        report["mean weight"], *report["off"]))
    for counts in ("full", "full or partial"):
        print(f"  {counts} counts as support: " + ", ".join(
            f"{what} {value:.2f} [{low:.2f}, {high:.2f}]" for what, (value, low, high) in report[counts].items()))


async def main(given: argparse.Namespace) -> None:
    check, reports = parse_support(given.support), {}
    async with contextlib.AsyncExitStack() as opened:
        model = None
        if isinstance(check, ModelSupport):
            database = given.journal and opened.enter_context(contextlib.closing(Database(given.journal, SCHEMA)))
            settings = ModelSettings(calls=CallLimits(seconds=900))
            client = await opened.enter_async_context(open_model(check.model, settings))
            model = Model(client, Journal(database), check.max_tokens)
        for name, (load, right) in SETS.items():
            if given.only not in (None, name):
                continue
            items = spread([item for item in load(given.data) if len(text_of(item).split()) <= given.words], given.most)
            reports[name] = report_of(items, await levels_of(items, check, model), right)
            if not given.json:
                show(name, reports[name])
    if given.json:
        print(json.dumps(reports, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--support", default="lexical")
    parser.add_argument("--only", choices=list(SETS))
    parser.add_argument("--words", type=int, default=10**9)
    parser.add_argument("--most", type=int)
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--json", action="store_true")
    asyncio.run(main(parser.parse_args()))
