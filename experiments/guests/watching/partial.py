"""Compute the summary of an unfinished run from the answers it has so far. Nothing is written."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.cells import Cell, label_rows
from ragbed.experiments.formatting import join_names, plural
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.run_manifest import read_config, read_manifest
from ragbed.experiments.runs.store import RunFolder


def is_running(run: Path) -> bool:
    """Return whether a process works on the run: it holds the folder's lock."""
    if not (run / ".lock").is_file():
        return False
    try:
        FileLock(run / ".lock", timeout=0).acquire().lock.release()
    except Timeout:
        return True
    except OSError:  # this user may not lock it; a process that writes has a write-ahead log
        return (run / "records.sqlite-wal").exists()
    return False


def summarise_partial(folder: RunFolder) -> dict[str, Any] | None:
    """Return the summary of the answers so far, with `progress`; None if the run has finished in the meantime.

    All reads see one snapshot until the folder is closed, and the run goes on. Raises RunError if it has no answers.
    """
    folder.database.read("BEGIN")  # `close` ends it
    done = folder.done()
    if (folder.path / "summary.json").is_file():
        folder.database.flush()
        return None
    running, config = is_running(folder.path), read_config(folder.path)
    if not done:
        raise RunError(f"{folder.path}: the run has no answers yet; " + (
            f"`ragbed watch {folder.path}` follows it" if running else "rerun the `ragbed run` command to continue it"))
    made, questions = read_manifest(folder.path), folder.questions()
    if made.settings != digest(config or "") or (
            made.shard is None and made.benchmark["stored"] != folder.stored_questions()):
        raise RunError(f"{folder.path}: the run is being started again; repeat the command in a moment")
    plan = Plan.of_records(folder.path, made.scheme, questions.values(), map(Cell.of, made.cells))
    exemplars: int | None = 0
    try:
        exemplars = made.shard.exemplars if made.shard else len(plan.with_prompt_files().exemplars)
    except SettingsError:
        exemplars = None  # the file is not here, so their number is unknown
    summary = summarise(replace(plan, notes=made.shard.notes) if made.shard else plan, folder, exemplars or 0)
    for row in summary["cells"]:
        row["exemplars"] = exemplars
    return {**summary, "complete": False, "progress": describe_progress(
        summary["cells"], done, questions, running, bool(plan.schedule))}


def describe_progress(rows: Sequence[Mapping[str, Any]], done: Collection[tuple[str, str]],
                      questions: Collection[str], running: bool, raced: bool = False) -> dict[str, Any]:
    """Return how many of its answers a run has, as JSON: in all, and by cell. `said` has sentences for readers."""
    there: dict[str, set[str]] = defaultdict(set)
    for cell, question in done:
        if question in questions:
            there[cell].add(question)
    counts = [{"cell": row["id"], "name": name, "answers": len(there[row["id"]]), "expected": len(questions)}
              for row, name in zip(rows, label_rows(rows), strict=True)]
    answers, expected = sum(one["answers"] for one in counts), len(questions) * len(rows)
    started = [there[row["id"]] for row in rows if there[row["id"]]]
    unequal = any(one != started[0] for one in started)
    shared = len(set.intersection(*started)) if started else 0
    none = [f"`{one['name']}`" for one in counts if not one["answers"]]
    said = [f"{answers:,} of {'at most ' * raced}{plural(expected, 'answer')}; the figures cover these. " + (
        "The run is still under way." if running else "The run was stopped before its end.")]
    if unequal:
        said.append("The cells have answered different questions so far, so comparisons use the questions that both "
                    f"cells have. Every cell that has begun has answered the same {shared:,} of "
                    f"{plural(len(questions), 'question')}.")
    if none:
        said.append(f"Without an answer so far: {join_names(none, 3)}.")
    return {"answers": answers, "expected": expected, "running": running, "unequal": unequal,
            "shared": shared, "cells": counts, "said": said}
