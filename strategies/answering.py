"""Ask for a final answer in tags, as JSON or as plain text, and read it from the reply."""
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
from ragbed.strategies.reading import REWORDED, is_refusal, read_citations, refusal_notes, strip_thinking
from ragbed.strategies.types import Draft, Evidence, Form, Generate, Message, Recipe, Reply, Task


def answer(task: Task, name: str, evidence: Evidence, *notes: str, thinks: bool = True, last: bool = True,
           **fields: str) -> Recipe:
    """Ask for the final answer with one call, and return the draft.

    Args:
        name: name of the instruction, `prompts/<name>.md`; `fields` fills its fields.
        notes: notes to add to the draft.
        thinks: whether the instruction asks for reasoning before the answer.
        last: see `draft`.
    """
    call = ask_for_answer(task, instruction(task, name, **fields), evidence, thinks)
    return (yield from draft(call, task, *notes, thinks=thinks, last=last))


def ask_for_answer(task: Task, instruction: str, evidence: Evidence, thinks: bool = True) -> Generate:
    """Build the call for a final answer that starts a conversation: documents, rules, question and instruction."""
    said = instruction + form_instruction(task, thinks)
    first = first_message(task, evidence, said, form=answer_form(task, thinks))
    return ask_for_answer_in(task, (system_message(), first), evidence, thinks)


def ask(task: Task, instruction: str, evidence: Evidence, purpose: str, rules: bool = False) -> Generate:
    """Build a call that shows the evidence but does not ask for the answer yet. Its prompt begins like that of
    `ask_for_answer`. `rules` adds rules and exemplars."""
    first = first_message(task, evidence, instruction, rules, form=answer_form(task), later=True)
    return Generate((system_message(), first), purpose, shown_numbers(task, evidence))


def ask_for_answer_in(task: Task, messages: tuple[Message, ...], evidence: Evidence, thinks: bool = True) -> Generate:
    """Build the call for a final answer at the end of a conversation. The messages show the evidence and end with
    `form_instruction`."""
    schema = answer_schema(task, thinks) if task.answer_format == "json" else None
    return Generate(messages, "answer", shown_numbers(task, evidence), schema=schema)


def draft(call: Generate, task: Task, *notes: str, thinks: bool = True, last: bool = False) -> Recipe:
    """Make the call for a final answer, and read the draft from its reply. With `last`, the recipe promises to return
    this draft unchanged, so that the reply can be streamed."""
    form = answer_form(task, thinks)
    reply: Reply = yield replace(call, answers=form) if last else call
    return Draft.from_reply(reply, *notes, form=form)


def answer_form(task: Task, thinks: bool = True) -> Form:
    """Return the form of the final answer. An answer without reasoning needs no tags."""
    if task.answer_format == "json":
        return "fields"
    return "tags" if thinks else "plain"


def form_instruction(task: Task, thinks: bool = True) -> str:
    """Return the end of the prompt for a final answer: its form, and how to answer sub-questions."""
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
    """Return the JSON Schema of a final answer: `reasoning`, `refused`, `answer` and `citations`, as far as the rules
    ask for them.

    As OpenAI's structured outputs demand, all fields are required and other fields are forbidden. Models write fields
    in this order, so they decide whether to refuse before they write an answer.
    """
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
    """Read the answers to sub-questions 1 to `count`; None for each that has no line `Sub-answer N: ...`.

    The line may have emphasis or a list mark. If lines have the same number, the last one counts. Text in `<think>` is
    ignored.
    """
    lines = _LINE.findall(strip_thinking(text))
    found = {int(number): _TAG.split(answer, maxsplit=1)[0].strip(" \t\r*_") for number, answer in lines}
    return tuple(found.get(number) or None for number in range(1, count + 1))


def strip_sub_answers(draft: Draft, task: Task) -> Draft:
    """If the task asks for sub-answers, remove them from a draft and leave the final answer."""
    if not task.with_sub_answers:
        return draft
    text = _LINE.sub("", draft.text).strip() if _LINE.search(draft.text) else draft.text
    named = _FINAL.match(text)
    text = text[named.end():].strip() if named else text
    if text == draft.text:
        return draft
    notes = (*(note for note in draft.notes if note != REWORDED), *refusal_notes(text))
    return replace(draft, text=text, cited=read_citations(text), refused=is_refusal(text), notes=notes,
                   well_formed=draft.well_formed and bool(text))
