"""Run `ragbed ask`: print a question's events while it is answered, and then its answer."""
from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from json import dumps
from typing import TYPE_CHECKING, Any

from ragbed.agents.model_settings import PROMPT_CUT
from ragbed.agents.types import Answer, DecisionStep
from ragbed.agents.watchdog import watchdog
from ragbed.experiments.analysis.model_notes import note_models
from ragbed.experiments.terminal.display import note, print_json, say, stoppable, write
from ragbed.experiments.terminal.steps import PassagePlaces, chunk_row, place, show_steps, step_row
from ragbed.retrieval.index import Index
from ragbed.strategies.history import ASKS

if TYPE_CHECKING:
    from ragbed.agents.assistant import AssistantSettings
    from ragbed.strategies.types import Turn


class EventPrinter:
    """Print replies on stdout as they arrive, and steps, decisions and reasoning on stderr.

    If several calls run concurrently, one is shown live, and the others after it ends.
    """

    def __init__(self) -> None:
        self._shown: int | None = None
        self._waiting: dict[int, list[dict[str, Any]]] = {}
        self._begun = {False: True, True: True}  # whether the next piece begins a line, on stdout and on stderr

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
            if self._waiting:  # waiting replies are shown in the order in which their calls began
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
        case "calling":
            return f"-- calls {event['tool']} {dumps(event['arguments'], ensure_ascii=False)}"
        case "tool":
            return f"-- {event['tool']} found {event['found']}, {event['characters']:,} characters{failed}"
        case "asking":
            return f"-- call {event['call']}: {event['purpose']}, documents shown {event['shown']}"
        case "retry":
            return f"-- call {event['call']} is made again; ignore its output so far{because}"
        case "reply" if failed:
            return f"-- call {event['call']}{failed}"
        case "decision":
            return f"-- decides: {event['what']}{because}"
    return ""


def ask(settings: AssistantSettings, question: str, *, stream: bool, trace: bool, json: bool,
        turns: Sequence[Turn] = ()) -> bool:
    """Answer a question and print the answer with its citations.

    Args:
        stream: print events while the question is answered.
        json: print JSON instead: one object, or with `stream` one object per line.
        turns: the conversation before the question.

    Returns:
        False if the question was neither answered nor refused.
    """
    show = (partial(print_json, indent=None) if json else EventPrinter()) if stream else None
    with stoppable("nothing is kept"), watchdog():
        answer, index, judge_notes = asyncio.run(_play(settings, question, turns, show))
    row = answer_row(answer, index, settings)
    row["notes"] += judge_notes
    if PROMPT_CUT in answer.notes:
        row["notes"].append("the server counted fewer prompt tokens than the prompt has, so it probably cut the prompt;"
                            f" check with: ragbed doctor {settings.model}")
    if json:
        steps = {"trace": [step_row(step) for step in answer.trace]} if trace else {}
        print_json({**({"event": "answer"} if stream else {}), **row, **steps}, None if stream else 2)
        return answer.outcome in ("answered", "refused")
    if trace:
        show_steps(answer.trace, PassagePlaces({one["number"]: place(one) for one in row["evidence"]}))
    elif asked := _rewritten(answer):
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
    return answer.outcome in ("answered", "refused")


def _rewritten(answer: Answer) -> str:
    return next((step.why for step in answer.trace if isinstance(step, DecisionStep) and step.what == ASKS), "")


async def _play(settings: AssistantSettings, question: str, turns: Sequence[Turn],
                show: Callable[[dict[str, Any]], None] | None) -> tuple[Answer, Index, list[str]]:
    from ragbed.agents.assistant import Assistant

    async with Assistant.open(settings) as assistant:
        answer = await assistant.play(assistant.begin(question, turns=turns), show)
        return answer, assistant.index, assistant.judge_notes()


def answer_row(answer: Answer, index: Index, settings: AssistantSettings) -> dict[str, Any]:
    """Return the answer as `ask --json` prints it."""
    evidence = {passage.number: {"number": passage.number, **chunk_row(passage.chunk, index)}
                for passage in answer.evidence}
    return {"outcome": answer.outcome, "answer": answer.text, "refused": answer.refused,
            "citations": [evidence[number] for number in answer.cited],
            "invalid_citations": list(answer.invalid_citations), "evidence": list(evidence.values()),
            "failure": answer.failure.message if answer.failure else None,
            "model": settings.model, "usage": asdict(answer.used), "seconds": round(answer.cost.seconds, 3),
            "notes": note_models([settings.model], settings.calls)}
