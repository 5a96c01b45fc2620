"""`ragbed show-prompt`: print what a model would be sent, message by message, without sending it."""
from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragbed.experiments.commands.options import AsJson, Texts, refuse

if TYPE_CHECKING:
    from ragbed.documents.types import Chunk
    from ragbed.strategies.types import Failure, Generate, Message, Reasoning, Reply, Search, Task

_EXAMPLES = ("(The text of the first passage that a search finds.)", "(The text of the second passage.)")
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class Preview:
    """The calls that a strategy makes, as far as they are known without a model.

    Attributes:
        calls: distinct calls, each with the number of its samples.
        texts: names of the prompt texts that were used, in order.
        ends: whether the last call is the strategy's last one for certain.
    """

    label: str
    calls: tuple[tuple[Generate, int], ...]
    texts: tuple[str, ...]
    ends: bool


def show_prompt(strategies: Annotated[list[str] | None, typer.Argument(metavar="[STRATEGY]...", help=(
                    "Name, FILE.py:FUNCTION or YAML. With two, their difference is shown."))] = None,
                question: Annotated[str | None, typer.Option("--question", help="Question; with --settings, or its id.")
                                    ] = None,
                settings: Annotated[Path | None, typer.Option("--settings", metavar="FILE", help=(
                    "Settings of a run. STRATEGY is then the name of a cell."))] = None,
                index: Annotated[Path | None, typer.Option("--index", help=(
                    "Folder of an index to search. By default, passages are placeholders."))] = None,
                reply: Annotated[Texts, typer.Option("--reply", help=(
                    "Reply of the model to the next call. Repeatable."))] = None,
                texts: Annotated[bool, typer.Option("--texts", help=(
                    "List the texts that `prompts` can replace, or print those named."))] = False,
                json: AsJson = False) -> None:
    """Print what a model would be sent, message by message. No model is called.

    The last line of each call names the texts it consists of. The setting `prompts` replaces them.
    """
    if texts:
        _print_texts(strategies or [], json)
        return
    if len(strategies or []) > 2 or not (strategies or settings):
        refuse("give one strategy, or two to see their difference, such as `ragbed show-prompt direct`")
    if settings is not None:
        if index is not None:
            refuse("--index and --settings cannot be combined: the settings name the index")
        found = _previews_of_run(settings, strategies or [], question, reply or [])
    else:
        if question is None:
            refuse("give a question, as in --question \"How long is the warranty?\"")
        found = _previews(strategies or [], question, index, reply or [])
    _print(found, json)


def _previews(names: Sequence[str], question: str, index: Path | None, replies: Sequence[str]) -> list[Preview]:
    from ragbed.agents.tools import describe_tools
    from ragbed.documents.types import Chunk
    from ragbed.experiments.settings.texts import parse_spec
    from ragbed.strategies.retrieval.once import once
    from ragbed.strategies.settings.strategy_config import parse_strategy
    from ragbed.strategies.types import Task

    parsed = [parse_strategy("reasoning", parse_spec(name, "STRATEGY")) for name in names]
    if index is None:
        examples = [Chunk(f"example {place}", "example", "plain", 0, len(text), text)
                    for place, text in enumerate(_EXAMPLES, 1)]
        return [preview(one.label, one.function, Task("", question, once, tools=describe_tools(one.tools)),
                        lambda search: examples, replies) for one in parsed]
    from ragbed.retrieval.index import Index
    from ragbed.retrieval.pool import RetrieverChoice, WholeSearch
    from ragbed.retrieval.retrievers import Dense

    whole = WholeSearch(Index.open(index), RetrieverChoice(Dense()))
    return [preview(one.label, one.function, Task("", question, once, tools=describe_tools(one.tools)), lambda search: [
        hit.chunk for hit in whole.search([search.query], search.k or 5)[0]], replies) for one in parsed]


def _previews_of_run(path: Path, names: Sequence[str], question: str | None, replies: Sequence[str]) -> list[Preview]:
    from dataclasses import replace

    from ragbed.agents.tools import describe_tools
    from ragbed.experiments.cells import PIPELINE, label_rows
    from ragbed.experiments.guests.run_estimates.dry_run import PlannedEvidence
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.resources import Resources
    from ragbed.experiments.runs.finished import cell_not_found, match_cells
    from ragbed.experiments.settings.file import read_runs

    plan = Plan.of(read_runs(path)[0])
    rows = [{"id": cell.id, **cell.levels} for cell in plan.cells if cell.reasoning != PIPELINE]
    known, evidence = dict(zip(label_rows(rows), rows, strict=True)), PlannedEvidence(plan, Resources(plan))
    asked = next((one for one in plan.benchmark.questions if question in (None, one.id, one.text)), None)
    if asked is None:
        asked = replace(plan.benchmark.questions[0], text=str(question), turns=(), options=(), sub_questions=())
    found: list[Preview] = []
    for name in names or list(known)[:1]:
        labels = match_cells(known, name)
        if not labels:
            raise cell_not_found(name, known)
        cell = next(one for one in plan.cells if one.id == known[labels[0]]["id"])
        tasks = plan.tasks(cell)
        task = replace(tasks.whole(asked), tools=describe_tools(tasks.tools))
        found.append(preview(labels[0], tasks.reasoning, task, lambda search, cell=cell: [  # type: ignore[misc]
            *evidence.chunks(cell, asked, search.k)], replies))
    return found


def preview(label: str, recipe: Reasoning, task: Task, find: Callable[[Search], Sequence[Chunk]],
            replies: Sequence[str]) -> Preview:
    """Play a strategy up to the first call that no reply answers."""
    from ragbed.agents.replies import parse_object
    from ragbed.agents.scripted import drive
    from ragbed.agents.search import request_json
    from ragbed.agents.tools import ToolOutput
    from ragbed.strategies.types import Failure, Reply, Search

    rounds: list[dict[tuple[Message, ...], list[Generate]]] = []
    texts: tuple[str, ...] = ()

    def answer(together: Sequence[Generate]) -> list[Reply | Failure]:
        nonlocal texts
        if len(rounds) > len(replies):  # the strategy goes on after a call without a reply
            return [Failure("stopped", "")] * len(together)
        rounds.append({})
        for call in together:
            rounds[-1].setdefault(call.messages, []).append(call)
        texts = tuple(used)
        if len(rounds) > len(replies):
            return [Failure("stopped", "")] * len(together)
        text = replies[len(rounds) - 1]
        return [Reply(text, parsed=call.schema and parse_object(text, call.schema)) for call in together]

    with _list_read_prompts() as used:
        done = drive(recipe, task, answer, lambda searches: [find(one) for one in searches], call=lambda calls: [
            ToolOutput(tuple(find(Search(request_json(one.arguments))))) for one in calls])
    if len(rounds) < len(replies):
        refuse(f"{label} uses {len(rounds)} of the {len(replies)} replies; remove the others")
    calls = tuple((same[0], len(same)) for calls in rounds for same in calls.values())
    return Preview(label, calls, texts, done.failure is None or (bool(calls) and calls[-1][0].answers is not None))


@contextmanager
def _list_read_prompts() -> Iterator[dict[str, None]]:
    """List the prompts that are read within a block, in order."""
    from ragbed.strategies.prompting import READ_PROMPTS

    names: dict[str, None] = {}
    token = READ_PROMPTS.set(names)
    try:
        yield names
    finally:
        READ_PROMPTS.reset(token)


def _lines(one: Preview) -> Iterator[str]:
    from ragbed.strategies.token_estimates import estimate_prompt_tokens

    before: tuple[Message, ...] = ()
    for number, (call, samples) in enumerate(one.calls, 1):
        many = f", {samples} samples" if samples > 1 else ""
        yield f"== call {number}: {call.purpose}, about {estimate_prompt_tokens(call)} tokens{many}"
        known = len(before) if before and call.messages[:len(before)] == before else 0
        if known:
            yield f"-- the {known} messages of call {number - 1}"
        before = call.messages
        for message in call.messages[known:]:
            yield f"-- {message.role}"
            yield from message.content.rstrip("\n").split("\n")
        if call.schema or call.tools:
            yield f"-- with {'a JSON Schema of the reply' if call.schema else 'tools'}"


def _print(found: Sequence[Preview], json: bool) -> None:
    from ragbed.experiments.terminal.display import console, note, print_json, printable, say

    if json:
        print_json([{"strategy": one.label, "ends": one.ends, "texts": list(one.texts), "calls": [
            {"purpose": call.purpose, "samples": samples, "messages": [
                {"role": message.role, "content": message.content} for message in call.messages],
             **({"schema": call.schema} if call.schema else {}), **({"tools": list(call.tools)} if call.tools else {})}
            for call, samples in one.calls]} for one in found])
        return
    texts = [list(_lines(one)) for one in found]
    if len(found) == 1:
        for line in texts[0]:
            say(line)
    else:
        first, second = (one.label for one in found)
        for line in difflib.unified_diff(texts[0], texts[1], first, second, lineterm="", n=2):
            console().print(printable(line), markup=False, soft_wrap=True, highlight=False,
                            style=_COLOURS.get(line[:1], ""))
        if texts[0] == texts[1]:
            say(f"{first} and {second} send the same messages")
    for one in found:
        name = f"{one.label}: " if len(found) > 1 else ""
        if one.texts:
            note(f"{name}made of the texts {', '.join(one.texts)}")
        if not one.calls:
            note(f"{name}no model is called")
        elif not one.ends:
            note(f"{name}later calls depend on the replies; --reply TEXT answers call {len(one.calls)}")


def _print_texts(names: Sequence[str], json: bool) -> None:
    from ragbed.experiments.terminal.display import print_json, print_table, say
    from ragbed.strategies.prompting import VARIANTS, fields_of, prompt_names, read_prompt

    known = [name for name in prompt_names() if name != VARIANTS]
    if unknown := [name for name in names if name not in known]:
        near = difflib.get_close_matches(unknown[0], known, 1)
        refuse(f"there is no text {unknown[0]!r}; " + (f"did you mean {near[0]}?" if near else
                                                      "`ragbed show-prompt --texts` lists them"))
    if json:
        print_json({name: read_prompt(name) for name in names or known})
    elif names:
        say("\n\n".join(map(read_prompt, names)))
    else:
        print_table(["text", "fields"], [[name, " ".join(f"{{{one}}}" for one in sorted(fields_of(read_prompt(name))))]
                                         for name in known])
