"""`ragbed ask` at work: a question shown while it is answered, saved after each step where wanted, and its answer."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbed.agents.checkpoint import write_state
from ragbed.agents.types import Answer, DecisionStep
from ragbed.agents.watchdog import watchdog
from ragbed.experiments.analysis.notes import on_models
from ragbed.experiments.terminal.display import note, print_json, say, stoppable, write
from ragbed.experiments.terminal.show import PassagePlaces, chunk_row, place, show_steps, step_row
from ragbed.retrieval.index import Index
from ragbed.strategies.history import ASKS

if TYPE_CHECKING:
    from ragbed.agents.assistant import AssistantSettings
    from ragbed.agents.graph import State
    from ragbed.strategies.types import Turn


class Watched:
    """Print replies on stdout, piece by piece, and steps, decisions and reasoning on stderr. Of calls that are made
    together one is shown as it comes, and what the others say is kept until it ended."""

    def __init__(self) -> None:
        self._shown: int | None = None
        self._waiting: dict[int, list[dict[str, Any]]] = {}
        self._begun = {False: True, True: True}  # whether the next piece begins a line: of stdout, and of stderr

    def __call__(self, event: dict[str, Any]) -> None:
        call = event.get("call")
        if call is None:
            self._tell(event)
        elif self._shown in (None, call):
            self._of_call(event)
        else:
            self._waiting.setdefault(call, []).append(event)

    def _of_call(self, event: dict[str, Any]) -> None:
        self._shown = event["call"]
        if event["event"] in ("token", "reasoning"):
            stderr = event["event"] == "reasoning"
            self._end_line(not stderr)
            self._begun[stderr] = event["text"].endswith("\n")
            write(event["text"], stderr)
            return
        self._tell(event)
        if event["event"] == "reply":
            self._shown = None
            if self._waiting:  # those that wait come in the order in which their calls began
                for one in self._waiting.pop(min(self._waiting)):
                    self._of_call(one)

    def _tell(self, event: dict[str, Any]) -> None:
        line = _line(event)
        if line or event["event"] == "reply":
            self._end_line(False)
            self._end_line(True)
        if line:
            note(line)

    def _end_line(self, stderr: bool) -> None:
        if not self._begun[stderr]:
            write("\n", stderr)
            self._begun[stderr] = True


def _line(event: dict[str, Any]) -> str:
    failure, why = event.get("failure"), event.get("why")
    failed, because = f", failed: {failure}" if failure else "", f" ({why})" if why else ""
    match event["event"]:
        case "searching":
            return f"-- searches for {event['query']!r}"
        case "search":
            return f"-- found {event['found']}{failed}"
        case "asking":
            return f"-- call {event['call']}: {event['purpose']}, documents shown {event['shown']}"
        case "retry":
            return f"-- call {event['call']}: is made again, what it said so far is void{because}"
        case "reply" if failed:
            return f"-- call {event['call']}{failed}"
        case "decision":
            return f"-- decides: {event['what']}{because}"
    return ""


_STOPPED = "what was found and said so far is in {file}; go on with `ragbed resume {file}` and the same options"


@dataclass(slots=True)
class _Ended:
    index: Index
    steps: int = 0
    answer: Answer | None = None
    judged: tuple[str, ...] = ()


def ask(settings: AssistantSettings, question: str | State, *, stream: bool, trace: bool, json: bool,
        save: Path | None = None, stop_after: int | None = None, turns: Sequence[Turn] = ()) -> bool:
    """Ask a question, after turns, or go on with one, and show what comes of it; `json` is for programs, one object, or
    one on each line where it is streamed. The file `save` keeps the question after each step, and after `stop_after`
    steps it stops. Returns False where it ended neither in an answer nor in a refusal. Raises UserError for what the
    user can mend."""
    watch = (partial(print_json, indent=None) if json else Watched()) if stream else None
    kept = _STOPPED.format(file=save) if save else "nothing is kept; --save FILE keeps each step"
    with stoppable(kept), watchdog():
        ended = asyncio.run(_played(settings, question, turns, watch, save, stop_after))
    if ended.answer is None:
        if json:
            print_json({"event": "stopped", "steps": ended.steps, "saved": str(save)}, None if stream else 2)
        else:
            note(f"stopped after {ended.steps} steps; {_STOPPED.format(file=save)}")
        return True
    row = answer_row(ended.answer, ended.index, settings.model)
    row["notes"] += ended.judged
    if json:
        steps = {"trace": [step_row(step) for step in ended.answer.trace]} if trace else {}
        streamed = {"event": "answer"} if stream else {}
        print_json({**streamed, **row, **steps}, None if stream else 2)
        return ended.answer.outcome in ("answered", "refused")
    if trace:
        show_steps(ended.answer.trace, PassagePlaces({one["number"]: place(one) for one in row["evidence"]}))
    elif asked := _asked(ended.answer):
        note(f"asked as: {asked}")
    if trace or stream:
        say("== answer")
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
    return ended.answer.outcome in ("answered", "refused")


def _asked(answer: Answer) -> str:
    return next((step.why for step in answer.trace if isinstance(step, DecisionStep) and step.what == ASKS), "")


async def _played(settings: AssistantSettings, question: str | State, turns: Sequence[Turn],
                  watch: Callable[[dict[str, Any]], None] | None, save: Path | None, stop_after: int | None) -> _Ended:
    from ragbed.agents.assistant import Assistant

    async with Assistant.open(settings) as assistant:
        state = assistant.begin(question, turns=turns) if isinstance(question, str) else question
        ended = _Ended(assistant.index)
        keep = partial(write_state, save) if save else None
        begun = len(state.get("results", ()))
        async with contextlib.aclosing(assistant.play(state, watch is not None, keep)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    ended.answer = event
                    continue
                if watch is not None:
                    watch(event)
                if event["event"] == "saved":
                    ended.steps = event["steps"]
                    if ended.steps - begun == stop_after:
                        break
        ended.judged = tuple(assistant.on_judges())
        return ended


def answer_row(answer: Answer, index: Index, model: str) -> dict[str, Any]:
    """Return the answer as `ask --json` prints it."""
    evidence = {passage.number: {"number": passage.number, **chunk_row(passage.chunk, index)}
                for passage in answer.evidence}
    return {"outcome": answer.outcome, "answer": answer.text, "refused": answer.refused,
            "citations": [evidence[number] for number in answer.cited],
            "invalid_citations": list(answer.invalid_citations), "evidence": list(evidence.values()),
            "failure": answer.failure.message if answer.failure else None,
            "model": model, "usage": asdict(answer.used), "seconds": round(answer.cost.seconds, 3),
            "notes": on_models([model])}
