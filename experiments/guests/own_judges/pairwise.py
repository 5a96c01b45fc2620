"""Compare the answers of two cells pairwise: a model sees both answers to a question, in both orders.

An answer wins if it is preferred in both orders. If the preference changes with the order, the pair is a tie and counts
as a flip. Equal answers are a tie without a call.
"""
from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ragbed.agents.journal import Exchange, ExchangeResult, Journal, Model, complete_with_repair
from ragbed.agents.models import open_model
from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.formatting import format_price
from ragbed.experiments.guests.own_judges.judge_replies import read_reply
from ragbed.experiments.guests.own_judges.judges import RubricJudge
from ragbed.experiments.guests.own_judges.stored_pairs import keep_pairs, view_pairs
from ragbed.experiments.guests.rescoring.rejudge import grade_all
from ragbed.experiments.metrics import Metric, ScoredQuestion, aggregate, declare_metrics
from ragbed.experiments.record import Result
from ragbed.experiments.runs.finished import Finished, cell_not_found, match_cells, open_finished
from ragbed.experiments.runs.store import lock_run
from ragbed.experiments.settings.file import read_settings
from ragbed.experiments.statistics.testing import holm, mcnemar
from ragbed.experiments.statistics.units import cluster_questions
from ragbed.experiments.terminal.display import Bars, note, print_json, say, stoppable
from ragbed.experiments.terminal.run_tables import print_views
from ragbed.strategies.prompting import fields_of, fill, fill_untrusted_text, template
from ragbed.strategies.reading import strip_citations
from ragbed.strategies.types import Failure, Generate, Message

_NAMES = ("A", "B", "Tie")
_FIELDS = ("question", "gold", "first", "second")
_WIN = Metric("win_rate", "share of pairs that the cell wins, ties counted as half")
_UNREAD = Metric("win_rate_unjudged", "share of pairs that the judge did not compare", share=True)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to a question, in one order. `fields` fill the prompt."""

    prompt: str
    fields: Mapping[str, str]

    def compare(self, max_tokens: int = 512) -> Exchange[str]:
        """Ask which answer is better. Return `A`, `B` or `Tie`, or why there is no verdict."""
        text = fill_untrusted_text(self.prompt, "of the pairwise judge", self.fields)
        messages = [Message("user", (text if "winner:" in self.prompt.lower() else f"{text}\n\n"
                                     f"{fill('pairwise_reply')}",))]
        for purpose in ("judge", "judge_repair"):
            reply = yield Generate(tuple(messages), purpose, max_tokens=max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return f"call failed: {reply.kind}"
            found = None if reply.finish_reason == "length" else read_reply(reply.text, _NAMES)
            if found is not None:
                return found[0]
            messages += [Message("assistant", (reply.text or "(empty)",)),
                         Message("user", (fill("pairwise_repair"),))]
        return "unreadable twice"


def read_prompt_file(path: Path | None) -> str:
    """Return the text of a prompt for pairs, by default ragbed's. Raises SettingsError for unknown fields."""
    if path is None:
        return template("pairwise")
    text = RubricJudge.read_file(str(path), "--rubric")
    if (found := fields_of(text)) - {*_FIELDS} or not {"first", "second"} <= found:
        raise SettingsError(f"--rubric {path}: it needs the fields {{first}} and {{second}}, and may have {{question}} "
                            f"and {{gold}}; it has {', '.join(sorted(found)) or 'none'}")
    return text


def outcome(forward: str, backward: str) -> tuple[float | None, bool]:
    """Return the score of the first cell (1, 0.5 or 0; None if a verdict is missing), and whether the preference
    changed with the order. `backward` is the verdict with the answers exchanged."""
    if forward not in _NAMES or backward not in _NAMES:
        return None, False
    pair = (forward, backward)
    return {("A", "B"): 1.0, ("B", "A"): 0.0}.get(pair, 0.5), pair in (("A", "A"), ("B", "B"))


def show_pairs(path: Path, against: str, model: str, rubric: Path | None, json: bool) -> None:
    """Compare every other cell of a run with one, and print how often each wins."""
    with ExitStack() as opened:
        run = opened.enter_context(open_finished(path))
        known = dict(zip(run.labels.values(), run.rows, strict=True))
        named = match_cells(known, against)
        if len(named) != 1:
            raise cell_not_found(against, known) if not named else RunError(
                f"--against {against!r} names {len(named)} cells; name one of: {', '.join(named)}")
        if len(known) < 2:
            raise RunError(f"{path}: has only one cell; there is nothing to compare it with")
        opened.callback(lock_run(run.path).release)
        with stoppable("verdicts so far are kept in the run's journal; rerun the command to continue"), Bars() as bars:
            rows, spent = asyncio.run(_compare(run, known, named[0], model, read_prompt_file(rubric), bars))
        keep_pairs(run, named[0], model, rows)
    if json:
        print_json({"run": str(path), "against": named[0], "judge": model, "cells": rows, "calls": spent[0],
                    "replayed": spent[1], "paid": spent[2]})
        return
    say(run.name)
    print_views([view_pairs(rows, named[0], model)])
    note(f"{spent[0]} calls sent and {spent[1]} from the journal, newly paid {format_price(spent[2])}")
    note(f"`ragbed report {path}` and `ragbed compare {path}` show this too")


async def _compare(run: Finished, known: Mapping[str, Mapping[str, Any]], base: str, model: str, prompt: str,
                   bars: Any) -> tuple[list[dict[str, Any]], tuple[int, int, float | None]]:
    labels = {row["id"]: label for label, row in known.items()}
    answers: dict[str, dict[str, Result]] = {label: {} for label in known}
    for result in run.folder.results():
        answers[labels[result.cell]][result.question] = result
    settings = read_settings(run.path / "config.yaml")
    pairs: dict[tuple[str, str], Pair] = {}
    for label in known:
        for id, other in answers[base].items() if label != base else ():
            texts = [strip_citations(one.text) or "(no answer)" for one in (answers[label][id], other)]
            for order, (first, second) in (("forward", texts), ("backward", texts[::-1])):
                question = run.questions[id]
                fields = {"question": question.in_context, "gold": "\nor: ".join(question.answers) or "none is known",
                          "first": first, "second": second}
                if texts[0] != texts[1]:
                    pairs[f"{label}\n{id}", order] = Pair(prompt, {name: fields[name] for name in fields_of(prompt)})
    async with open_model(model, settings.call_settings) as client:
        asked = Model(client, Journal(run.folder.database), settings.limits.max_tokens)

        async def ask(pair: Pair) -> ExchangeResult[str]:
            return await complete_with_repair(asked, pair.compare(),
                                              lambda: time.monotonic() + settings.limits.seconds)

        found = await grade_all(pairs, ask, client.limits.concurrency, partial(bars, f"compared by {model}"))
    clusters = cluster_questions(run.questions.values(), run.scheme.unit).of
    rows = [_row(label, [(id, *_said(found, f"{label}\n{id}")) for id in answers[base]], clusters)
            for label in known if label != base]
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
    costs = [one.cost for one in found.values()]
    paid = [one.paid for one in costs]
    return rows, (sum(one.attempts for one in costs), sum(one.replayed for one in costs),
                  None if None in paid else sum(filter(None, paid)))


def _said(found: Mapping[tuple[str, str], ExchangeResult[str]], key: str) -> tuple[float | None, bool]:
    both = [found[key, order].end for order in ("forward", "backward") if (key, order) in found]
    return outcome(*both) if both else (0.5, False)


def _row(label: str, said: list[tuple[str, float | None, bool]], clusters: Mapping[str, str]) -> dict[str, Any]:
    declare_metrics([_WIN, _UNREAD])
    values = [value for _, value, _ in said]
    scored = [ScoredQuestion(True, "answered", {"win_rate": value, "win_rate_unjudged": float(value is None)})
              for value in values]
    wins, losses = values.count(1.0), values.count(0.0)
    rate = aggregate(scored, clusters=[clusters[id] for id, _, _ in said])["win_rate"]
    return {"cell": label, "pairs": len(said), "win_rate": rate, "wins": wins, "ties": values.count(0.5),
            "losses": losses, "flips": sum(flip for *_, flip in said), "unread": values.count(None),
            "p": mcnemar(wins, losses)}
