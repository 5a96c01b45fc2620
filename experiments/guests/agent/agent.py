"""An agent: the model calls tools in turns until it has what the question needs, then answers with citations.

What surrounds the model is a harness: how calls are written, how results are delivered, what happens when the context
is full, and when to stop. Each is a parameter, so that a run can compare them (Sen et al. 2026, arXiv:2605.15184).
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from ragbed.experiments.guests.agent.agent_messages import Loop, TurnProtocol
from ragbed.experiments.guests.agent.context import Context
from ragbed.experiments.guests.agent.protocols import STOP_OF_CALLS, Native, ProtocolName, Talk, Text
from ragbed.experiments.guests.agent.reading import example_call, properties, read_lines
from ragbed.experiments.guests.agent.results import DeliveredTools, Delivery
from ragbed.strategies.answering import answer, answer_form, draft
from ragbed.strategies.prompting import fill, first_message, rule_text, show_exemplars, system_message, template
from ragbed.strategies.types import Decision, Draft, Generate, Recipe, Reply, Task, Tools, ToolSpec

_CONFIDENCE = re.compile(r"\n?[ \t>*_#`-]{0,8}confidence[*_`]{0,3} ?[:：=][ *_`]{0,3}(\d{1,3}(?:\.\d{1,6})?)"
                         r"[^\n<]{0,80}", re.IGNORECASE)
_KINDS = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false"}
_SEARCH = Tools(("search",))


def agent(task: Task, *, tools: Tools = _SEARCH, turns: Annotated[int, Field(ge=1, le=100)] = 12,
          protocol: ProtocolName = "auto", delivery: Delivery = "inline", context: Context = None,
          plan: bool = False, confidence: bool = False) -> Recipe:
    """Call tools in turns, until the model has enough or the turns are used up, then answer.

    `protocol: auto` tries tool calls first, and goes on in text as `react` does. `delivery` shows results `inline`, as
    a `digest` (their first lines and a handle), or as a `file` (a handle only); the tool `read_result` opens handles.
    With `plan`, the model writes a plan first. With `confidence`, it says how sure it is; the figure is from 0 to 1.
    """
    if task.rules == "closed-book" or not task.tools:
        return (yield from answer(task, "chain_of_thought", (), "no_search"))
    called = DeliveredTools(task, delivery)
    specs = called.specs
    names = ", ".join(spec.name for spec in task.tools)
    yield Decision("begins", f"tools: {names}; {turns} turns; delivery {delivery}")
    attempts: list[tuple[TurnProtocol, Talk]] = []
    if protocol != "text":
        attempts.append((Native(specs, called.accept), _open(task, template("agent_tools"))))
    if protocol != "native":
        example = example_call(specs[0])
        listed = fill("agent_first", tools="\n".join(map(_describe, specs)), example=example)
        attempts.append((Text(partial(_ask_for_next, task.question, example), partial(read_lines, specs=specs),
                              STOP_OF_CALLS), _open(task, listed)))
    loop = Loop(task, "agent", called, turns, context.make_room if context else None, plan)
    last, talk = yield from loop.play(attempts)
    asks = "agent_confidence_field" if answer_form(task) == "fields" else "agent_confidence"
    # The rules come last: small models that read them first refuse before they call a tool.
    rules = show_exemplars(task, answer_form(task)) + rule_text(task)
    prompt = fill("agent_answer", rules=rules, question=task.question)
    call = loop.ask_for_answer(last, talk, prompt, f" {template(asks)}" if confidence else "")
    made = yield from _draft(call, task) if confidence else draft(call, task, last=True)
    return replace(made, figures={**made.figures, "unread_calls": called.unread_calls})


agent.gathers = False  # type: ignore[attr-defined]  # so that a run does not ask it once for each retrieval strategy


def _open(task: Task, instruction: str) -> Talk:
    """Begin a conversation without documents and rules. Only the rule about documents is needed from the beginning."""
    first = first_message(task, None, instruction, rules=False, form=answer_form(task), later=True)
    quoted = f"{template('framed_datamarked')}\n" if task.framing == "datamarked" else ""
    framed = "" if task.framing == "none" else f"{quoted}{template('framed_rule').removeprefix('- ')}\n\n"
    return Talk((system_message(), replace(first, parts=(framed, *first.parts))))


def _ask_for_next(question: str, example: str, informed: bool) -> str:
    """Ask for the next turn. Small models finish as soon as they may, so they may not before they have seen text."""
    return fill("agent_next", question=question) if informed else fill(
        "agent_next_call", question=question, example=example)


def _describe(spec: ToolSpec) -> str:
    """Describe a tool in one line, with its arguments as the model writes them."""
    required = spec.parameters.get("required") or ()
    fields = ", ".join(f'"{name}": {_kind(schema)}{"" if name in required else " (optional)"}'
                       for name, schema in properties(spec).items())
    return f"{spec.name}: {{{fields}}} - {spec.description}"


def _kind(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return _KINDS.get(str(kind), "value")


def _draft(call: Generate, task: Task) -> Recipe:
    """Make the call for the answer, and read from its reply the confidence too, from 0 to 1."""
    form = answer_form(task)
    if call.schema is not None:
        fields = {**call.schema["properties"], "confidence": {"type": "number"}}
        call = replace(call, schema={**call.schema, "properties": fields, "required": [*fields]})
    reply: Reply = yield call
    if form == "fields":
        said = str(reply.parsed.get("confidence", "")) if isinstance(reply.parsed, Mapping) else ""
    else:
        found = [*_CONFIDENCE.finditer(reply.text)]
        said = found[-1][1] if found else ""
        reply = replace(reply, text=_CONFIDENCE.sub("", reply.text))
    made = Draft.from_reply(reply, form=form)
    sure = _share(said)
    return made if sure is None else replace(made, figures={"confidence": sure})


def _share(said: str) -> float | None:
    """Read a confidence: a number up to 100, or a decimal fraction such as 0.85. Return None for anything else."""
    if not re.fullmatch(r"\d{1,3}(?:\.\d{1,17})?", said) or float(said) > 100:
        return None
    return float(said) if "." in said and float(said) <= 1 else float(said) / 100
