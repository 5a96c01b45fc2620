"""Build prompts from text files with named fields, and separate untrusted text from instructions.

The first user message begins with the documents; exemplars, rules, the strategy's instruction, question and options
follow. Serving engines then compute the documents once for all strategies, and small models answer a question better
if it comes last.

Documents are put between marks (delimiting), optionally with a sign on every line, after datamarking (Hines et al.,
"Defending Against Indirect Prompt Injection Attacks With Spotlighting", 2024, arXiv:2403.14720). The paper puts a sign
between all words, but small models read documents well only with one per line.
"""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from ragbed import guests
from ragbed.documents.types import digest
from ragbed.strategies.reading import is_refusal, read_citations
from ragbed.strategies.types import Evidence, Exemplar, Form, Framing, Message, Passage, Task

_LINE_START = re.compile(r"^", re.MULTILINE)
_NUMBER_LINE = re.compile(r"^([ \t]*)\[(\d{1,6})\]([ \t]*)$", re.MULTILINE)
_NUMBER_START = re.compile(r"^([ \t]*)\[(\d{1,6})\](.*)$", re.MULTILINE)  # with headers, text follows the number
# Marks that begin and end turns in chat templates. Servers would take these for their own marks.
_CONTROL = re.compile(r"(?=[<＜\[])(?:[<＜](?=[|｜])|[<＜](?=/?(?:(?:start|end)_of_turn|s|bos|eos)>)|\[(?=/?INST\])"
                      r"|<(?=</?SYS>>))", re.IGNORECASE)


def mark_pattern(*names: str) -> re.Pattern[str]:
    """Return a pattern for the `<` of marks with these names, in any case and spacing."""
    spaced = "|".join(name.replace("_", r"[\s_-]*") for name in names)
    return re.compile(rf"[<＜](?=[\s/／]*(?:{spaced})(?!\w))", re.IGNORECASE)


@cache
def prompt_mark_pattern(text: str) -> re.Pattern[str] | None:
    """Return a pattern for the `<` of the marks around a prompt's fields; None if it has no marks."""
    names = re.findall(r"^</(\w+)>$", text, re.MULTILINE)
    return mark_pattern(*names) if names else None


_DOCUMENT_MARKS = mark_pattern("documents", "answer", "thinking", "think")


def neutralize_turns(text: str) -> str:
    """Disarm marks that begin or end a turn of the conversation: `<|im_end|>` becomes `(|im_end|>`."""
    return _CONTROL.sub("(", text)


@lru_cache(maxsize=512)  # several calls and strategies show the same passages
def frame_content(content: str, framing: Framing, headed: bool = False) -> str:
    """Return a document's content as shown between the marks. The first character of each mark that could end the
    documents, begin another document or a turn, or imitate answer tags becomes `(`. `headed`: whether headers follow
    the numbers of documents."""
    if framing == "none":
        return content
    if any(sign in content for sign in "<＜["):  # most texts have no such sign, so skip the slow patterns
        content = (_NUMBER_START if headed else _NUMBER_LINE).sub(
            r"\1(\2)\3", _DOCUMENT_MARKS.sub("(", neutralize_turns(content)))
    return _LINE_START.sub("> ", content.rstrip("\n")) if framing == "datamarked" else content


# names of the prompts that `template` returned, in order, where somebody wants to know them
READ_PROMPTS: ContextVar[dict[str, None] | None] = ContextVar("read prompts", default=None)
_FIELD = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")  # `{{word}}` is the text `{word}`
_REPLACED: ContextVar[Mapping[str, str]] = ContextVar("replaced prompts", default={})  # noqa: B039 (never changed)
_REFERENCE = re.compile(r"#\d")


def template(name: str) -> str:
    """Return the text of `prompts/<name>.md`, or the text that replaces it (`replace_prompts`)."""
    if (names := READ_PROMPTS.get()) is not None:
        names[name] = None
    return text if (text := _REPLACED.get().get(name)) is not None else read_prompt(name)


@contextmanager
def replace_prompts(texts: Mapping[str, str]) -> Iterator[None]:
    """Replace prompts by name within a block. Blocks may be nested."""
    token = _REPLACED.set({**_REPLACED.get(), **texts})
    try:
        yield
    finally:
        _REPLACED.reset(token)


def with_prompts(function: Callable[..., Any], texts: Mapping[str, str]) -> Callable[..., Any]:
    """Return a strategy that uses these texts instead of the prompts with their names."""
    if not texts:
        return function

    @wraps(function)
    def recipe(*given: Any, **values: Any) -> Generator[Any, Any, Any]:
        result: Any = None
        with closing(function(*given, **values)) as inner:
            while True:
                try:
                    with replace_prompts(texts):
                        asked = inner.send(result)
                except StopIteration as end:
                    return end.value
                result = yield asked

    return recipe


@cache
def read_prompt(name: str) -> str:
    """Read the text of `prompts/<name>.md`, of ragbed or of a guest. Raises KeyError if there is none."""
    file = next((file for folder in prompt_folders() if (file := folder.joinpath(f"{name}.md")).is_file()), None)
    if file is None:
        raise KeyError(f"there is no prompt {name}")
    return file.read_text(encoding="utf-8").strip()


def prompt_folders() -> Iterator[Traversable]:
    """Yield the folder of ragbed's prompts, then those of guests."""
    yield resources.files("ragbed.strategies.prompts")
    yield from guests.loaded("prompts").values()


def fill(name: str, **fields: str) -> str:
    """Fill in the fields of a template. Raises KeyError if a field is missing or unknown."""
    return fill_text(template(name), name, fields)


def fill_text(text: str, name: str, fields: Mapping[str, str]) -> str:
    """Fill in the fields of a text, as `fill` does; `name` appears in its KeyError."""
    wanted = fields_of(text)
    if wanted != set(fields):
        raise KeyError(f"prompt {name} has the fields {sorted(wanted)}, was given {sorted(fields)}")
    return _FIELD.sub(lambda field: f"{{{field[1]}}}" if field[1] else fields[field[2]], text)


def fields_of(text: str) -> set[str]:
    """Return the names of a text's fields, such as `{question}`."""
    return {name for _, name in _FIELD.findall(text) if name}


VARIANTS = "prompt_variants"
PROMPT_VARIANTS = 5  # number of variants per instruction, including the original


@cache
def _other_variants() -> dict[str, list[str]]:
    """Read variants 2, 3, ... of each instruction, by the file name of its first variant."""
    parts = re.split(r"^# (\w+)\n", read_prompt(VARIANTS), flags=re.MULTILINE)[1:]
    return {name: text.strip().split("\n\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


def instruction(task: Task, name: str, **fields: str) -> str:
    """Fill in the fields of an instruction, `prompts/NAME.md`. If `prompts/prompt_variants.md` has the task's variant
    of it, use that."""
    others = _other_variants().get(name)
    if others and task.prompt_variant > 1:
        return fill_text(others[task.prompt_variant - 2], name, fields)
    return fill(name, **fields)


def fill_untrusted_text(text: str, name: str, fields: Mapping[str, str]) -> str:
    """Fill in fields that strangers wrote, each between marks such as `<passage>` on separate lines. In a field, the
    `<` of such a mark becomes `(`, in any case and spacing: the text after `</passage>` in a passage would look like
    instructions. A field cannot begin a turn either."""
    marks = prompt_mark_pattern(text)
    inside = {field: neutralize_turns(value) for field, value in fields.items()}
    return fill_text(text, name, {field: marks.sub("(", value) for field, value in inside.items()} if marks else inside)


def fill_untrusted(name: str, **fields: str) -> str:
    """Fill a template whose fields a model or a stranger wrote; see `fill_untrusted_text`."""
    return fill_untrusted_text(template(name), name, fields)


@cache
def prompts_hash() -> str:
    """Hash all prompt files, for the record of a run."""
    return digest(*(part for name in prompt_names() for part in (f"{name}.md", read_prompt(name))))


def prompt_names() -> list[str]:
    """Return the names of all prompts, sorted."""
    return sorted({entry.name.removesuffix(".md") for folder in prompt_folders() for entry in folder.iterdir()
                   if entry.name.endswith(".md")})


def show_documents(task: Task, evidence: Evidence | None) -> str:
    """Format the documents as every prompt of this question shows them: number, header if there is one, and content.
    None shows nothing, not even that there are no documents."""
    if evidence is None or task.rules == "closed-book":
        return ""
    if not evidence:
        return "Documents: none.\n\n"
    shown = "".join(f"{_document_line(task, passage)}"
                    f"{frame_content(passage.chunk.content, task.framing, bool(passage.header))}\n\n"
                    for passage in evidence)
    if task.framing == "none":
        return f"Documents:\n\n{shown}"
    quoted = f"{template('framed_datamarked')} " if task.framing == "datamarked" else ""
    return f"{quoted}{template('framed_documents')}\n\n<documents>\n{shown}</documents>\n\n"


def _document_line(task: Task, passage: Passage) -> str:
    header = frame_content(" ".join(passage.header.split()), "none" if task.framing == "none" else "delimited")
    line = " ".join(filter(None, [f"[{passage.number}]" if task.separators else "", header]))
    return f"{line}\n" if line else ""


def show_exemplars(task: Task, form: Form, later: bool = False) -> str:
    """Format the worked examples, with reasoning and tags if the strategy asks for them. `later`: whether a later call
    asks for the answer."""
    if not task.exemplars:
        return ""
    shown = []
    for number, one in enumerate(task.exemplars, start=1):
        texts = [f"[{place}]\n{text}" if task.separators else text for place, text in enumerate(one.documents, 1)]
        documents = "\n\n".join(["Documents:", *texts, ""]) if texts and task.rules != "closed-book" else ""
        shown.append(fill("exemplar", number=str(number), documents=documents, question=one.question,
                          solution=_solution(task, one, form)))
    return "\n\n".join([template("exemplars_later" if later else "exemplars"), *shown, ""])


def _solution(task: Task, exemplar: Exemplar, form: Form) -> str:
    if form == "plain":
        return exemplar.answer
    if form == "tags":
        thinking = f"<Thinking>{exemplar.reasoning}</Thinking>\n" if exemplar.reasoning else ""
        return f"{thinking}<Answer>{exemplar.answer}</Answer>"
    said: dict[str, Any] = {"reasoning": exemplar.reasoning} if exemplar.reasoning else {}
    if task.rules == "grounded":
        said["refused"] = is_refusal(exemplar.answer)
    said["answer"] = exemplar.answer
    if task.cites:
        said["citations"] = list(read_citations(exemplar.answer))
    return json.dumps(said, ensure_ascii=False)


def rule_text(task: Task) -> str:
    """Return the rules in the prompt for a final answer."""
    name = f"rules_{task.rules.replace('-', '_')}"
    if task.rules == "closed-book" and task.chooses:
        name += "_choice"
    elif not task.separators and task.rules in ("grounded", "open"):
        name += "_uncited"
    lines = [fill(name, refusal=task.refusal) if task.rules == "grounded" else template(name)]
    if task.framing != "none" and task.rules != "closed-book":
        lines.append(template("framed_rule"))
    if added := template("instruction"):
        lines.append(added if "\n" in added else f"- {added}")
    return "\n".join(lines)


def _question(task: Task) -> str:
    about = fill("about", about=task.about) + "\n" if task.about and task.rules == "closed-book" else ""
    options = "".join(f"\n{label}. {text}" for label, text in task.options)
    asked = f"{about}Question: {task.question}{options}"
    if not task.sub_questions:
        return asked
    listed = "".join(f"\n{number}. {text}" for number, text in enumerate(task.sub_questions, start=1))
    references = "\n" + template("references") if any(map(_REFERENCE.search, task.sub_questions)) else ""
    return f"{asked}\nSub-questions:{listed}{references}"


def sub_answer_instruction(task: Task) -> str:
    """Return the instruction to answer sub-questions too; empty if the task does not ask for it."""
    if not task.with_sub_answers or not task.sub_questions:
        return ""
    return "\n\n" + fill("sub_answers", count=str(len(task.sub_questions)))


def first_message(task: Task, evidence: Evidence | None, instruction: str, rules: bool = True,
                  instruction_last: bool = False, form: Form = "tags", later: bool = False) -> Message:
    """Return the first user message: documents, exemplars, rules, instruction, question, options.

    With the layout `as_published` the order is CReSt's: rules and instruction, exemplars, question, documents.

    Args:
        rules: show rules and exemplars.
        instruction_last: put the instruction after the question in every layout, because it refers to the question.
        form: the form of the exemplars' answers.
        later: a later call asks for the answer. The instruction then comes last, since small models immediately answer
            a question at the end.
    """
    documents = show_documents(task, evidence)
    rules_shown, exemplars = (rule_text(task) + "\n\n", show_exemplars(task, form, later)) if rules else ("", "")
    before, after = ("", f"\n\n{instruction}") if instruction_last or later else (f"{instruction}\n\n", "")
    if task.layout == "documents_first":
        shared = (documents, exemplars) if exemplars else (documents,)
        return Message("user", (*shared, f"{rules_shown}{before}{_question(task)}{after}"))
    shown = documents.rstrip()
    if instruction_last:
        return Message("user", (f"{rules_shown}{exemplars}{_question(task)}\n\n", shown, f"\n\n{instruction}"))
    return Message("user", (f"{rules_shown}{instruction}\n\n{exemplars}{_question(task)}\n\n", shown))


def system_message() -> Message:
    """Return the system message, which all strategies share."""
    return Message("system", (template("system"),))


def shown_numbers(task: Task, evidence: Evidence) -> tuple[int, ...]:
    """Return the evidence numbers that a prompt shows; none under `closed-book`."""
    return () if task.rules == "closed-book" else tuple(passage.number for passage in evidence)
