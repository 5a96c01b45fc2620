"""Prompts: text files with named fields, put together so that all strategies share one prefix.

The first user message begins with the documents; rules, question, options and the strategy's
instruction follow. Serving engines then compute the documents once for all strategies.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from documents.types import digest
from strategies.reading import REFUSAL
from strategies.types import Evidence, Message, Task

_FIELD = re.compile(r"\{([a-z_]+)\}")


@cache
def template(name: str) -> str:
    """The text of `prompts/<name>.md`."""
    return resources.files("strategies.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def fill(name: str, **fields: str) -> str:
    """The template with its fields filled in.

    Raises:
        KeyError: a field is missing from `fields`, or is given and not in the template.
    """
    return fill_text(template(name), name, fields)


def fill_text(text: str, name: str, fields: Mapping[str, str]) -> str:
    """As `fill`, for a text that stands elsewhere; `name` is what the KeyError calls it."""
    wanted = set(_FIELD.findall(text))
    if wanted != set(fields):
        raise KeyError(f"prompt {name} has the fields {sorted(wanted)}, was given {sorted(fields)}")
    return _FIELD.sub(lambda field: fields[field.group(1)], text)


@cache
def prompts_hash() -> str:
    """One hash over every prompt file, for the record of a run."""
    folder = resources.files("strategies.prompts")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".md"))
    return digest(*(part for name in names for part in (name, template(name.removesuffix(".md")))))


def show_documents(task: Task, evidence: Evidence) -> str:
    """The documents as every prompt of this question shows them: number and content, nothing else."""
    if task.rules == "closed-book":
        return ""
    if not evidence:
        return "Documents: none.\n\n"
    if not task.separators:
        return "Documents:\n\n" + "".join(f"{passage.chunk.content}\n\n" for passage in evidence)
    return "Documents:\n\n" + "".join(f"[{passage.number}]\n{passage.chunk.content}\n\n" for passage in evidence)


def _rules(task: Task) -> str:
    name = f"rules_{task.rules.replace('-', '_')}"
    if not task.separators and task.rules in ("grounded", "open"):
        return fill(f"{name}_uncited", refusal=REFUSAL) if task.rules == "grounded" else template(f"{name}_uncited")
    return fill(name, refusal=REFUSAL) if task.rules == "grounded" else template(name)


def _question(task: Task) -> str:
    options = "".join(f"\n{label}. {text}" for label, text in task.options)
    hints = "".join(f"\n- {text}" for text in task.sub_questions)
    return f"Question: {task.question}{options}" + (f"\nSub-questions:{hints}" if hints else "")


def first_message(task: Task, evidence: Evidence, instruction: str, rules: bool = True,
                  instruction_last: bool = False) -> Message:
    """The first user message: documents, rules, question, options, instruction.

    With the layout `as_published` the order is CReSt's: rules and instruction, question, documents.

    Args:
        instruction_last: the instruction takes up the question, and comes after it in every layout.
    """
    documents = show_documents(task, evidence)
    rule_text = _rules(task) + "\n\n" if rules else ""
    if task.layout == "documents_first":
        return Message("user", (documents, f"{rule_text}{_question(task)}\n\n{instruction}"))
    shown = documents.rstrip()
    if instruction_last:
        return Message("user", (f"{rule_text}{_question(task)}\n\n", shown, f"\n\n{instruction}"))
    return Message("user", (f"{rule_text}{instruction}\n\n{_question(task)}\n\n", shown))


def system_message() -> Message:
    """The one system message of all strategies."""
    return Message("system", (template("system"),))


def prompt(name: str, task: Task, evidence: Evidence, rules: bool = True) -> tuple[Message, ...]:
    """The opening messages of a strategy whose instruction is `prompts/<name>.md`."""
    return system_message(), first_message(task, evidence, template(name), rules)


def numbers(task: Task, evidence: Evidence) -> tuple[int, ...]:
    """The evidence numbers that a prompt of this task over this evidence shows; under `closed-book` none."""
    return () if task.rules == "closed-book" else tuple(passage.number for passage in evidence)
