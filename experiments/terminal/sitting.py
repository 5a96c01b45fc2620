"""Asking one question at a terminal: played to its end, or saved after each step and stopped after some."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.saved import write_state
from agents.types import Answer
from experiments.notes import on_models
from experiments.running.results import used
from experiments.terminal.display import note, print_json, say
from experiments.terminal.passages import chunk_row, place
from experiments.terminal.stopping import stoppable
from experiments.terminal.trace import Places, show_steps, step_row
from experiments.terminal.watching import Watched, as_lines
from retrieval.index import Index

if TYPE_CHECKING:
    from agents.assistant import AssistantSettings
    from agents.graph import State

_STOPPED = "what was found and said so far is in {file}; go on with `ragbed resume {file}`"


@dataclass(frozen=True, slots=True)
class How:
    """How a question is asked at a terminal.

    Attributes:
        stream: whether to show what happens as it does.
        json: for programs: one object, or one on each line where it is streamed.
        save: the file that keeps the question after each step; None keeps it nowhere.
        stop_after: steps; None goes on to the end.
    """

    stream: bool
    trace: bool
    json: bool
    save: Path | None = None
    stop_after: int | None = None


@dataclass(slots=True)
class _Sitting:
    """What came of it; no answer where it was stopped before."""

    index: Index
    steps: int = 0
    answer: Answer | None = None
    judged: tuple[str, ...] = ()


def sit(settings: AssistantSettings, question: str | State, how: How) -> bool:
    """Ask a question, or go on with one, and show what comes of it.

    Returns:
        False where it ended neither in an answer nor in a refusal.

    Raises:
        UserError: what the user can mend.
    """
    with stoppable(_STOPPED.format(file=how.save) if how.save else "nothing is kept; --save FILE keeps each step"):
        ended = asyncio.run(_played(settings, question, how))
    if ended.answer is None:
        _say_stopped(ended, how)
        return True
    row = answer_row(ended.answer, ended.index, settings.model)
    row["notes"] += ended.judged
    if how.json:
        trace = {"trace": [step_row(step) for step in ended.answer.trace]} if how.trace else {}
        print_json({"event": "answer", **row, **trace} if how.stream else {**row, **trace}, None if how.stream else 2)
    else:
        if how.trace:
            show_steps(ended.answer.trace, Places({one["number"]: place(one) for one in row["evidence"]}))
        if how.trace or how.stream:
            say("== answer")
        _show(row)
    return ended.answer.outcome in ("answered", "refused")


async def _played(settings: AssistantSettings, question: str | State, how: How) -> _Sitting:
    from agents.assistant import Assistant

    async with Assistant.open(settings) as assistant:
        state = assistant.begin(question) if isinstance(question, str) else question
        sitting = _Sitting(assistant.index)
        watch = (as_lines if how.json else Watched()) if how.stream else None
        keep = partial(write_state, how.save) if how.save else None
        begun = len(state.get("results", ()))
        async with contextlib.aclosing(assistant.play(state, watch is not None, keep)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    sitting.answer = event
                elif _goes_on(event, sitting, watch) and sitting.steps - begun == how.stop_after:
                    break
        sitting.judged = tuple(assistant.on_judges())
        return sitting


def _goes_on(event: dict[str, Any], sitting: _Sitting, watch: Callable[[dict[str, Any]], None] | None) -> bool:
    """Show an event; whether it is that of a step that ended and was saved."""
    if watch is not None:
        watch(event)
    if event["event"] != "saved":
        return False
    sitting.steps = event["steps"]
    return True


def _say_stopped(ended: _Sitting, how: How) -> None:
    stopped = {"event": "stopped", "steps": ended.steps, "saved": str(how.save)}
    if how.json:
        print_json(stopped, None if how.stream else 2)
    else:
        note(f"stopped after {ended.steps} steps; {_STOPPED.format(file=how.save)}")


def answer_row(answer: Answer, index: Index, model: str) -> dict[str, Any]:
    """The answer as `ask --json` prints it."""
    evidence = {passage.number: {"number": passage.number, **chunk_row(passage.chunk, index)}
                for passage in answer.evidence}
    return {"outcome": answer.outcome, "answer": answer.text, "refused": answer.refused,
            "citations": [evidence[number] for number in answer.cited],
            "invalid_citations": list(answer.invalid_citations), "evidence": list(evidence.values()),
            "failure": answer.failure.message if answer.failure else None,
            "model": model, "usage": asdict(used(answer)), "seconds": round(answer.cost.seconds, 3),
            "notes": on_models([model])}


def _show(row: dict[str, Any]) -> None:
    say(row["answer"] or f"No answer: {row['failure'] or row['outcome']}.")
    for citation in row["citations"]:
        say(f"  [{citation['number']}] {place(citation)}")
    if row["invalid_citations"]:
        say(f"  cited but never shown: {row['invalid_citations']}")
    usage = row["usage"]
    note(f"{row['outcome']} by {row['model']}: {usage['calls']} calls, {usage['prompt_tokens']} + "
         f"{usage['completion_tokens']} tokens, {row['seconds']} s")
    for text in row["notes"]:
        note(text)
