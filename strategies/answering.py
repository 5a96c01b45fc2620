"""Make the call for a final answer, in tags, as JSON or as the whole reply, and read it and its sub-answers."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragbed.strategies.prompting import (
    fill,
    first_message,
    instruction,
    shown_numbers,
    sub_answer_instruction,
    system_message,
    template,
)
from ragbed.strategies.reading import is_refusal, read_citations, strip_thinking
from ragbed.strategies.types import Draft, Evidence, Form, Generate, Message, Recipe, Reply, Task


def answer(task: Task, name: str, evidence: Evidence, *notes: str, thinks: bool = True, last: bool = True,
           **fields: str) -> Recipe:
    """Make one call over the evidence with the instruction `prompts/<name>.md`, its fields filled in, and return the
    draft that its reply is, with these notes; `thinks` says whether the instruction asks for reasoning before the
    answer, `last` is as in `draft`."""
    call = ask_for_answer(task, instruction(task, name, **fields), evidence, thinks)
    return (yield from draft(call, task, *notes, thinks=thinks, last=last))


def ask_for_answer(task: Task, instruction: str, evidence: Evidence, thinks: bool = True) -> Generate:
    """Return the call for a final answer that begins a conversation: documents, rules, question and instruction."""
    said = instruction + form_instruction(task, thinks)
    first = first_message(task, evidence, said, form=answer_form(task, thinks))
    return ask_for_answer_in(task, (system_message(), first), evidence, thinks)


def ask(task: Task, instruction: str, evidence: Evidence, purpose: str, rules: bool = False) -> Generate:
    """Return a call that begins like `ask_for_answer`, with rules and exemplars if `rules`, and asks for no answer
    yet."""
    first = first_message(task, evidence, instruction, rules, form=answer_form(task), later=True)
    return Generate((system_message(), first), purpose, shown_numbers(task, evidence))


def ask_for_answer_in(task: Task, messages: tuple[Message, ...], evidence: Evidence, thinks: bool = True) -> Generate:
    """Return the call for a final answer with these messages, which show the evidence and end with
    `form_instruction`."""
    schema = answer_schema(task, thinks) if task.answer_format == "json" else None
    return Generate(messages, "answer", shown_numbers(task, evidence), schema=schema)


def draft(call: Generate, task: Task, *notes: str, thinks: bool = True, last: bool = False) -> Recipe:
    """Make the call for a final answer, and read the draft from its reply. With `last` the recipe ends with it as it
    is, so that those who watch may be shown the reply as the answer while it comes."""
    form = answer_form(task, thinks)
    reply: Reply = yield replace(call, answers=form) if last else call
    return Draft.from_reply(reply, *notes, form=form)


def answer_form(task: Task, thinks: bool = True) -> Form:
    """Return the form that a final answer is asked for in: an answer without reasoning needs no tags."""
    if task.answer_format == "json":
        return "fields"
    return "tags" if thinks else "plain"


def form_instruction(task: Task, thinks: bool = True) -> str:
    """Return what follows the instruction of a final answer: its form, and how to answer the sub-questions too."""
    form = answer_form(task, thinks)
    if form == "fields":
        named = "; ".join(template(f"field_{name}") for name in answer_schema(task, thinks)["properties"])
        return f"\n\n{fill('form_json', fields=named)}{_brief_of(task, form)}"
    tags = f" {fill('form_tags', cited=template('form_cited') if task.cites else '')}" if form == "tags" else ""
    return tags + _brief_of(task, form) + sub_answer_instruction(task)


def _brief_of(task: Task, form: Form) -> str:
    if not task.brief or task.chooses:
        return ""
    if not task.cites or form == "fields":
        return " " + template("brief")
    before, after = ("<Answer>", "</Answer>") if form == "tags" else ("", "")
    return " " + fill("brief_cited", before=before, after=after)


def answer_schema(task: Task, thinks: bool = True) -> Mapping[str, Any]:
    """Return the JSON Schema of a final answer: `reasoning`, `refused`, `answer`, `citations`, as the rules say. Every
    field is required and no other allowed, as OpenAI's structured outputs demand. Servers write fields in their order:
    whether to refuse is decided before there is an answer to stand by."""
    fields: dict[str, Any] = {"reasoning": {"type": "string"}} if thinks else {}
    if task.rules == "grounded":
        fields["refused"] = {"type": "boolean"}
    labels = [label for label, _ in task.options]
    fields["answer"] = {"type": "string", "enum": labels} if task.chooses else {"type": "string"}
    if task.cites:
        fields["citations"] = {"type": "array", "items": {"type": "integer"}}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_TAG = re.compile(r"</?(?:thinking|answer)>", re.IGNORECASE)
_LINE = re.compile(r"^[ \t]{0,8}(?:<(?:thinking|answer)>[ \t]?)?(?:[-*•][ \t])?[*_]{0,3}sub-?answer[ \t]?(\d{1,2})"
                   r"[*_]{0,3}[ \t]?[:：][*_]{0,3}([^\n]*)\n?", re.IGNORECASE | re.MULTILINE)
_FINAL = re.compile(r"[*_]{0,3}(?:(?:the )?final )?answer[*_]{0,3} ?[:：][*_]{0,3}", re.IGNORECASE)


def read_sub_answers(text: str, count: int) -> tuple[str | None, ...]:
    """Read the answers to the sub-questions 1 to `count` from a reply, None for each that has no line of the form. A
    line is `Sub-answer N: ...`, with or without emphasis or a list mark. Of two lines with one number the last counts.
    A number out of range is nobody's, and what stands in `<think>` is no line."""
    lines = _LINE.findall(strip_thinking(text))
    found = {int(number): _TAG.split(answer, maxsplit=1)[0].strip(" \t\r*_") for number, answer in lines}
    return tuple(found.get(number) or None for number in range(1, count + 1))


def strip_sub_answers(draft: Draft, task: Task) -> Draft:
    """Return the draft with its final answer alone where sub-answers are asked for too."""
    if not task.with_sub_answers:
        return draft
    text = _LINE.sub("", draft.text).strip() if _LINE.search(draft.text) else draft.text
    named = _FINAL.match(text)
    text = text[named.end():].strip() if named else text
    if text == draft.text:
        return draft
    return replace(draft, text=text, cited=read_citations(text), refused=is_refusal(text),
                   well_formed=draft.well_formed and bool(text))
