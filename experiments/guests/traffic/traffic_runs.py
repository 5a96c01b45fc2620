"""Store the traffic of one configuration as a run with one cell, whose questions come from users.

All commands that read runs can read it. Its questions have no gold, so no answer is judged. Scores cover refusals, the
form of the reply, and citations of numbers that were never shown. Scores and summary are computed when somebody reads
the run, not while a client waits for an answer."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbed.agents.types import Answer
from ragbed.documents.errors import RunError
from ragbed.documents.types import digest
from ragbed.experiments.cells import Cell
from ragbed.experiments.metrics import score_result
from ragbed.experiments.question import Benchmark, Question, Scheme
from ragbed.experiments.record import Record
from ragbed.experiments.running.fingerprint import manifest_for
from ragbed.experiments.running.gold import match
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.run_manifest import questions_hash, read_manifest
from ragbed.experiments.runs.store import RunFolder, lock_run, write_lines, write_text
from ragbed.experiments.settings import RunSettings
from ragbed.retrieval.storage.files import hold
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.settings.strategy_config import parse_strategy
from ragbed.strategies.types import Turn

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant, AssistantSettings

TRAFFIC = "traffic.sqlite"  # file in the folder of traffic, which holds the runs
IN_USE = "a server uses this folder; stop it, or name another folder of traffic"
QUESTIONS = "questions.jsonl"  # file in each run with its questions, for `ragbed run`
PROMPTS = "prompts"  # folder with texts that replace prompts
EXEMPLARS = "exemplars.jsonl"  # file with exemplars, in each run whose prompts show them
SCHEME = Scheme(groups=("answers", "form"), rubric=None,
                columns=("refused_answerable", "well_formed", "invalid_citations"))
TASKS = "task-"  # start of the names of runs with prompts of client programs, such as for a title
_NEXT_PLACE = ("UPDATE questions SET place = (SELECT coalesce(max(place) + 1, 0) FROM questions WHERE id != ?)"
               " WHERE id = ?")
_MAX_NAME = 60  # characters of a configuration's name in its folder's name


def folder_name(name: str, assistant: Assistant) -> str:
    """Return the name of a configuration's run. It changes with settings, model, index or prompts."""
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-._")[:_MAX_NAME] or "configuration"
    return f"{plain}-{digest(name, json.dumps(assistant.made, sort_keys=True), prompts_hash())[:8]}"


class TrafficRun:
    """The run of one configuration in a folder. Raises RunError if another server uses it.

    Args:
        shared: whether other processes of the same server use the run, too. Otherwise it stays locked.
    """

    def __init__(self, path: Path, assistant: Assistant | None = None, shared: bool = False) -> None:
        lock = hold(path / ".lock", wait=True) if shared else lock_run(path)
        try:
            self.folder = folder = RunFolder(path, lock)
            if assistant is not None and not (path / "manifest.json").is_file():
                folder.begin(*describe_run(assistant, path), {})
            self.cell = Cell.of(read_manifest(path).cells[0])
            folder.reopen()
        except RunError:
            lock.release()
            raise
        if shared:
            lock.release()

    def add(self, question: Question, answer: Answer, source_of: Callable[[str], str]) -> None:
        """Store a question and its answer durably, both or neither. They replace those that are there."""
        database = self.folder.database
        with database.transaction():
            self.folder.put_question(question, 0)  # locks the file, so that each question gets its own place
            database.put(_NEXT_PLACE, (question.id, question.id))
            self.folder.put_record(answer_record(self.cell, question, answer, database, source_of), 0)

    def result(self, question: str) -> tuple[str, str] | None:
        """Return the outcome and the text of a question's answer; None if it has no record."""
        return next(((one.result.outcome, one.result.text) for one in self.folder.records_of(question)), None)

    def close(self) -> None:
        """Close the folder."""
        self.folder.close()


def describe_run(assistant: Assistant, path: Path) -> tuple[str, dict[str, Any]]:
    """Return the settings and the manifest of a run in a folder, and write its exemplars and prompts to it."""
    if assistant.settings.exemplars:
        write_lines(path / EXEMPLARS, map(asdict, assistant.settings.exemplars))
    for name, text in assistant.settings.prompts.items():
        (path / PROMPTS).mkdir(exist_ok=True)
        (path / PROMPTS / f"{name}.md").write_text(text, encoding="utf-8")
    # A question with history makes the history strategy a factor of the plan, before any question is asked.
    example = Question("", "", (), answerable=True, turns=(Turn("", ""),))
    plan = Plan.of(run_settings(assistant.settings, path), Benchmark(path.name, (example,), scheme=SCHEME))
    plan = plan.with_prompt_files()
    return plan.settings.to_yaml(), dict(manifest_for(plan, {assistant.settings.model: assistant.made["model"]}))


def answer_record(cell: Cell, question: Question, answer: Answer, texts: Any, source_of: Callable[[str], str]
                  ) -> Record:
    """Return the record of an answer. Its texts are put into the database `texts`."""
    from ragbed.experiments.running.cell_runner import StoredChunks, make_record, make_result

    view = match(question.gold, answer.ranked, source_of)
    return make_record(make_result(cell, question, True, answer, view, StoredChunks(texts, source_of)), answer.cost)


def run_settings(settings: AssistantSettings, path: Path) -> RunSettings:
    """Return the settings of a run that asks a configuration the same questions again."""
    fields = settings.model_dump(mode="json")
    retriever = {**fields["retriever"], "index": str(settings.index.absolute()), "where": fields["where"]}
    if parse_strategy("reasoning", fields["reasoning"], execute=False).searches:
        retriever["k"] = settings.k
    return RunSettings.model_validate({
        "name": path.name, "out": str(path.parent), "benchmark": {"kind": "jsonl", "path": str(path / QUESTIONS)},
        "models": [settings.model], "reasoning": [fields["reasoning"]], "retrieval": [fields["retrieval"]],
        "retriever": [retriever], "rules": [settings.rules], "conditions": ["retrieved"],
        "answer_formats": [settings.answer_format], "framings": [settings.framing], "layout": settings.layout,
        "headers": [settings.headers],
        "prompt_variants": [settings.prompt_variant], "history": [fields["history"]], "brief": settings.brief,
        "languages": [settings.language if settings.rules == "grounded" else "english"],
        "limits": fields["limits"], "calls": fields["calls"],
        **({"prompts": str(path / PROMPTS)} if settings.prompts else {}),
        "exemplars": str(path / EXEMPLARS) if settings.exemplars else None})


def open_run_folder(path: Path) -> Path:
    """Return the folder of a run. In a run of traffic, score new records and update manifest, questions and summary.

    For a traffic folder with a single run of answers, return that run. Raises RunError if it has several, or they
    cannot be written."""
    if (path / TRAFFIC).is_file():
        runs = [run for run in runs_of(path) if not run.name.startswith(TASKS)]
        if len(runs) != 1:
            raise RunError(f"{path} holds the traffic of {len(runs)} configurations; name the folder of one of them: "
                           f"{', '.join(map(str, runs)) or 'there is none yet'}")
        path, = runs
    if (path.parent / TRAFFIC).is_file() and (path / "records.sqlite").is_file():
        with closing(RunFolder.existing(path)) as folder:
            _score_new_records(folder)
            _summarise(folder)
    return path


def runs_of(folder: Path) -> list[Path]:
    """Return the folders of the runs in a folder of traffic, sorted by name."""
    return sorted(path.parent for path in folder.glob("*/records.sqlite"))


def _score_new_records(folder: RunFolder) -> None:
    made = read_manifest(folder.path)
    cell = Cell.of(made.cells[0])
    unscored = list(folder.results_with('"scores":{}'))
    questions = folder.questions([result.question for result in unscored]) if unscored else {}
    with folder.database.transaction():
        for result in unscored:
            folder.replace_result(score_result(result, questions[result.question], made.scheme, "corrected",
                                                cell.rules, cell.separators, cell.ranked))


def _summarise(folder: RunFolder) -> None:
    path = folder.path
    with folder.database.snapshot():
        results = folder.results_hash()
        questions = tuple(folder.questions().values())
        if not questions or ((path / "summary.json").is_file() and folder.summary()["results"] == results):
            return
        made = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        run = Finished(folder, {"name": made["benchmark"]["name"], "cells": made["cells"]})
        plan = Plan.of_finished(run)
        from ragbed.experiments.running.summary import summarise  # only for those who read, not for each answer

        summary = summarise(plan, folder, len(plan.with_prompt_files().exemplars))
        made["benchmark"] |= {"questions": len(questions), "hash": questions_hash(plan.benchmark),
                              "stored": folder.stored_questions()}
    write_lines(path / QUESTIONS, map(question_line, questions))
    write_text(path / "manifest.json", json.dumps(made, indent=2, sort_keys=True) + "\n")
    folder.finish(summary)


def question_line(question: Question) -> dict[str, Any]:
    """Return a question as a line of the format that the benchmark `jsonl` reads."""
    turns = {"turns": list(map(asdict, question.turns))} if question.turns else {}
    tags = {"tags": {name: list(values) for name, values in question.tags.items()}} if question.tags else {}
    return {"id": question.id, "question": question.text, **turns, **tags}
