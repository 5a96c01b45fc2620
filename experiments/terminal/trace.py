"""The steps of an answer in the terminal: of one just given, and of one that a run keeps."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any

from pydantic import TypeAdapter

from agents.types import DecisionStep, GenerateStep, SearchStep, Step, called, wire_message
from experiments.record import StoredStep
from experiments.terminal.display import console, say
from strategies.types import Message, Role

_ROLES: TypeAdapter[Role] = TypeAdapter(Role)
LONGEST = 20_000  # characters of a reply that a terminal shows; --json has all


def restored(step: StoredStep, text: Callable[[str], str]) -> Step:
    """Return the step as it was before it was stored; `text` gives a text by its hash."""
    if step.kind == "search":
        return SearchStep(step.query or "", step.found, step.failure)
    if step.kind == "decision":
        return DecisionStep(step.purpose or "", step.text)
    messages = tuple(Message(_ROLES.validate_python(one.role), tuple(map(text, one.parts)), one.tool_calls, one.call_id)
                     for one in step.messages)
    return GenerateStep(step.purpose or "", step.key or "", messages, step.shown, step.text, step.reasoning,
                        step.finish_reason, step.usage, step.failure, step.tool_calls)


def step_row(step: Step, prompts: bool = True) -> dict[str, Any]:
    """Return the step as JSON shows it, with the messages as sent, or with their number alone."""
    if isinstance(step, SearchStep):
        return {"kind": "search", **asdict(step)}
    if isinstance(step, DecisionStep):
        return {"kind": "decision", **asdict(step)}
    messages = [wire_message(message) for message in step.messages]
    return {"kind": "generate", **asdict(step), "messages": messages if prompts else len(messages)}


@dataclass(frozen=True, slots=True)
class PassagePlaces:
    """Where the passages of an answer come from.

    Attributes:
        of: their places by their numbers.
        searched: whether they were searched for, rather than placed.
        listed: the name of the cell under which they are listed already; None where they are not.
    """

    of: Mapping[int, str]
    searched: bool = True
    listed: str | None = None


def show_steps(steps: Sequence[Step], places: PassagePlaces, prompts: bool = True) -> None:
    """Print the steps, one below the other, with the messages as sent or without."""
    for count, step in enumerate(steps, 1):
        if isinstance(step, SearchStep):
            _show_search(count, step, places)
        elif isinstance(step, DecisionStep):
            say(f"== step {count}: decides: {step.what}{f' ({step.why})' if step.why else ''}")
        else:
            _show_call(count, step, prompts)


def _show_search(count: int, step: SearchStep, places: PassagePlaces) -> None:
    ended = f"failed: {step.failure.message}" if step.failure else f"found {list(step.found)}"
    if places.searched:
        say(f"== step {count}: search, {ended}")
        for line in wrap(f"for {step.query!r}", max(20, console().width - 3)):
            say(f"   {line}")
    else:
        say(f"== step {count}: placed, {ended if step.failure else list(step.found)}")
    if places.listed and step.found:
        say(f"   the passages as in {places.listed}")
        return
    for number in step.found:
        say(f"   [{number}] {places.of[number]}")


def _show_call(count: int, step: GenerateStep, prompts: bool) -> None:
    say(f"== step {count}: {step.purpose}, {len(step.messages)} messages, documents shown {list(step.shown)}")
    if prompts:
        for message in step.messages:
            say("\n".join([f"-- {message.role}{f' for {message.call_id}' if message.call_id else ''}",
                           *filter(None, [message.content]), *(cut(called(call)) for call in message.tool_calls)]))
    if step.reasoning:
        say(f"-- reasoning\n{cut(step.reasoning)}")
    why = step.finish_reason or (f"{step.failure.kind}: {step.failure.message}" if step.failure else "no word why")
    say(f"-- reply ({why})\n{cut(step.text)}")
    for call in step.tool_calls:
        say(f"   {cut(called(call))}")


def cut(text: str) -> str:
    """Cut the text where a terminal stops to show it."""
    more = len(text) - LONGEST
    return text if more <= 0 else f"{text[:LONGEST]}… ({more} more characters, with --json)"
