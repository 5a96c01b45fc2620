"""Check that a finished run is unaltered: recompute its figures from its records, and compare its hashes."""
from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ragbed.agents.database import row_hash
from ragbed.documents.errors import RunError, UserError
from ragbed.documents.types import digest
from ragbed.experiments.guests.rescoring.rescore import rescore
from ragbed.experiments.judges.judge import prompts_hash as judge_prompts_hash
from ragbed.experiments.record import Result
from ragbed.experiments.running.jobs import group_results
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.run_manifest import questions_hash, read_config
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.settings.exemplars import exemplars_hash, read_exemplars

_HASH = re.compile(r'"(?:text|prefix)": "([0-9a-f]{32})"')
_SHOWN = ("columns", "published")  # parts of a summary: which figures a table shows, and published figures


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one comparison.

    Attributes:
        detail: the comparison made, or why none was possible.
        wrong: differences, each with both sides.
        checked: False if something to compare with is not on this machine.
    """

    name: str
    detail: str
    differences: tuple[str, ...] = ()
    checked: bool = True

    @property
    def agrees(self) -> bool:
        return not self.differences


def verify(run: Finished) -> Iterator[Check]:
    """Yield every check. Later checks rely on earlier ones. Raises RunError if the manifest cannot be read."""
    plan, folder = Plan.of_finished(run), run.folder
    sealed, altered_since = folder.is_sealed(), folder.alterations(times=True)
    yield Check("seal", "files and numbers of rows against those when the run finished" if sealed else
                "the run has no seal: an earlier version of ragbed finished it, or it was altered",
                tuple(altered_since.values()), sealed)
    done, wanted = folder.done(), {(cell.id, question) for cell in run.cells for question in run.questions}
    if plan.schedule and _readable(folder):
        wanted = plan.schedule.due(group_results(folder.results()))
    altered = [f"{question} in cell {cell}: altered since it was stored" for cell, question in folder.altered()]
    wrong = [f"{question} in cell {cell}: {problem}" for pairs, problem in (
        (wanted - done, "no record"), (done - wanted, "a record of an unknown question or cell")
    ) for cell, question in sorted(pairs)]
    yield Check("records", f"{len(done)} records against their stored hashes", tuple(altered))
    yield Check("completeness", f"{len(run.cells)} cells of {len(run.questions)} questions" + (
        f", of which the race asked {len(wanted)} answers" if plan.schedule else ""), tuple(wrong))
    yield _hash("results", "the hash over all results against summary.json", run.summary["results"],
                folder.results_hash())
    if not wrong and _readable(folder):
        yield _scores(run)
        yield _figures(run, plan)
    else:
        yield Check("figures", "", ("cannot be computed from these records",))
    yield from check_stored(folder)
    yield from _hashes(run, plan.settings)


def check_stored(folder: RunFolder) -> Iterator[Check]:
    """Yield checks of what a run stores besides results: times, prompt parts and passages, calls, and searches."""
    database = folder.database
    yield Check("times", "the duration, requests and price of each record are readable", tuple(_unreadable(folder)))
    texts, calls, searches = set[str](), set[str](), set[str]()
    altered: dict[str, list[str]] = {"texts": [], "calls": [], "searches": []}
    for key, text in database.rows("SELECT hash, content FROM texts"):
        texts.add(key)
        if digest(text) != key:
            altered["texts"].append(key)
    for name, keys in (("calls", calls), ("searches", searches)):
        for row in database.rows(f"SELECT * FROM {name}"):  # noqa: S608
            keys.add(row[0])
            if row_hash(*row[:-1]) != row[-1]:
                altered[name].append(row[0])
    lost_calls, lost_texts = _find_lost(folder, calls, texts)
    yield Check("texts", f"{len(texts)} prompt parts and passages against their hashes", (
        *(f"text {key}: altered since it was stored" for key in altered["texts"]),
        *(f"text {key}: missing" for key in sorted(lost_texts))))
    for name, keys in (("calls", calls), ("searches", searches)):
        lost = sorted(lost_calls) if name == "calls" and calls else []
        yield Check(name, f"{len(keys)} of the journal against their stored hashes", (
            *(f"{key[:12]}: altered since it was stored" for key in altered[name]),
            *(f"{key[:12]}: missing" for key in lost)))


def _unreadable(folder: RunFolder) -> Iterator[str]:
    with suppress(RunError):
        for _ in folder.timings():
            pass
        return
    for cell, question in sorted(folder.done()):
        try:
            folder.timing(cell, question)
        except RunError:
            yield f"{question} in cell {cell}: unreadable"


def _find_lost(folder: RunFolder, calls: Set[str], texts: Set[str]) -> tuple[set[str], set[str]]:
    """Return the keys of calls, and the hashes of texts, that records, calls and searches refer to and that are not
    there. Records and rows that cannot be read are left out."""
    lost_calls, lost_texts = set[str](), set[str]()

    def add(result: Result) -> None:
        lost_texts.update({passage.text for passage in result.evidence} - texts)
        for step in (*result.trace, *(step for sub in result.subs for step in sub.trace)):
            lost_calls.update({step.key} - calls if step.key and not step.failure else ())
            parts = {*step.parts, *(part for message in step.messages for part in message.parts)}
            lost_texts.update({part for part in parts if isinstance(part, str)} - texts)

    try:
        for result in folder.results(traces=True):
            add(result)
    except RunError:  # a query for each question would take hours for a million records
        for question in sorted({question for _, question in folder.done()}):
            with suppress(RunError):
                for record in folder.records_of(question):
                    add(record.result)
    for (messages,) in folder.database.rows("SELECT messages FROM calls"):
        with suppress(ValueError, TypeError, LookupError):
            lost_texts |= {part for message in json.loads(messages) for part in message[1]} - texts
    for (found,) in folder.database.rows("SELECT found FROM searches"):
        lost_texts |= set(_HASH.findall(found)) - texts
    return lost_calls, lost_texts


def _readable(folder: RunFolder) -> bool:
    try:
        for _ in folder.results():
            pass
    except RunError:
        return False
    return True


def _scores(run: Finished) -> Check:
    again = rescore(run.folder, run.cells, run.scheme, run.scoring)
    wrong, count = [], 0
    for stored, scored in zip(run.folder.results(), again, strict=True):
        found = {name: scored.scores.get(name) for name in stored.scores}
        count += len(found)
        wrong += [f"{stored.question} in cell {stored.cell}: {text}"
                  for text in differences(stored.scores, found, "", "in the record", "scored again")]
    return Check("scores", f"{count} scores of answers against the same answers scored again", tuple(wrong))


def _figures(run: Finished, plan: Plan) -> Check:
    shown = next((row.get("exemplars", 0) for row in run.rows), 0)
    again = json.loads(json.dumps(summarise(plan, run.folder, shown)))
    known, made = ({name: value for name, value in one.items() if name not in _SHOWN} for one in (run.summary, again))
    both = {view["name"] for view in known["views"]} & {view["name"] for view in made["views"]}
    for one in (known, made):  # an analysis that only one of the versions has is not a difference
        one["views"] = {view["name"]: view for view in one["views"] if view["name"] in both}
    return Check("figures", f"{_leaves(made)} values of summary.json against the records",
                 tuple(differences(known, made, "", "in summary.json", "from the records")))


def _leaves(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if inner is None else sum(map(_leaves, inner))


def differences(old: Any, new: Any, at: str, named: str, again: str) -> Iterator[str]:
    """Yield the differences of two JSON values as text, with both values, labelled `named` and `again`. The last digits
    of numbers may differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from differences(old.get(key), new.get(key), f"{at}.{key}".lstrip("."), named, again)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{at}[{place}]", named, again)
    elif old != new and not (isinstance(old, float) and isinstance(new, float) and math.isclose(
            old, new, rel_tol=1e-9, abs_tol=1e-12)):  # because other processors round differently
        yield f"{at}: {_short(old)} {named}, {_short(new)} {again}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _hashes(run: Finished, settings: RunSettings) -> Iterator[Check]:
    folder, made = run.folder, run.made
    yield _hash("settings", "config.yaml against the manifest", made.settings, digest(read_config(folder.path) or ""))
    yield _hash("questions", "the run's questions against the manifest", made.benchmark.get("stored"),
                folder.stored_questions())
    try:
        yield _hash("benchmark", "its files against the manifest", made.benchmark.get("hash"),
                    questions_hash(settings.benchmark.load()))
    except UserError as error:
        yield Check("benchmark", f"its files cannot be read on this machine: {error}", checked=False)
    yield _hash("prompts", "the prompts of this version against the manifest", made.prompts, prompts_hash())
    yield _hash("judge prompts", "those of this version against the manifest", made.judge_prompt, judge_prompts_hash())
    try:
        yield _hash("exemplars", "their file against the manifest", made.exemplars,
                    exemplars_hash(read_exemplars(settings.exemplars)) if settings.exemplars else None)
    except UserError as error:
        yield Check("exemplars", f"their file cannot be read on this machine: {error}", checked=False)


def _hash(name: str, detail: str, recorded: Any, found: Any) -> Check:
    wrong = () if recorded == found else (f"the hash was {_short(recorded)}, is {_short(found)}",)
    return Check(name, detail, wrong)
