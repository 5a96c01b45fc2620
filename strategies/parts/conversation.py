"""Searching by queries that a model writes, also again and again in one conversation that ends with the answer.

Such a conversation only grows, so that serving engines compute each part of it once. It begins with the first
documents, the rules and the question; every iteration adds what the model said and what a search for that brought
that was not shown before; last comes the call for the answer.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbed.strategies.answering import answer, ask, ask_for_answer_in, draft, form_instruction
from ragbed.strategies.parts.lockstep import Lockstep
from ragbed.strategies.parts.merging import concatenate, new_passages
from ragbed.strategies.prompting import (
    fill,
    fill_untrusted,
    neutralize_turns,
    show_documents,
    shown_numbers,
    system_message,
    template,
)
from ragbed.strategies.reading import fold, read_answer
from ragbed.strategies.types import Asked, Decision, Draft, Evidence, Gathering, Generate, Message, Recipe, Reply, Task

_LONGEST_QUERY = 2_000  # characters; what is longer is no question, and embedders read less


def ask_without_documents(name: str, purpose: str, **fields: str) -> Generate:
    """Return a call that shows no evidence, with the prompt `prompts/<name>.md`; its instruction is a piece of its own,
    so that it is stored once however many queries it is filled with."""
    text = fill_untrusted(name, **fields)
    cut = text.index("\n<")  # where the first marks begin
    return Generate((system_message(), Message("user", (text[:cut], text[cut:]))), purpose)


def reply_line(reply: Reply) -> str:
    """Return what a reply says besides its thinking, on one line of at most 2,000 characters."""
    return " ".join(read_answer(reply.text)[0][:_LONGEST_QUERY].split())


def gather_each(task: Task, queries: Sequence[str], over: Callable[[Task, str], Gathering]) \
        -> Generator[Asked, Any, list[Evidence]]:
    """Gather for each query, in their order; what they ask for goes out together, and of equal queries once."""
    distinct = list(dict.fromkeys(queries))
    found = dict(zip(distinct, (yield from Lockstep().run([over(task, query) for query in distinct])), strict=True))
    return [found[query] for query in queries]


_LONGEST_TURN = 2_000  # characters of a reply that stay in the conversation
_IDLE = 2  # iterations in a row without news, after which there are none more


@dataclass(frozen=True, slots=True)
class SearchState:
    """What the searches of a question have brought so far."""

    evidence: Evidence = ()  # all of it, each passage once, in the order in which it was found
    texts: tuple[str, ...] = ()  # of each query of the last iteration, what it brought, as the conversation shows it
    fresh: int = 0  # how many passages the last iteration brought that were not found before
    over: str = ""  # why no further search is made, for a reader; empty where one may bring more
    queries: tuple[str, ...] = ()  # that were asked, folded
    idle: int = 0  # how many iterations in a row, the last one among them, brought nothing new


Finding = Generator[Asked, Any, SearchState]
Otherwise = Callable[[SearchState], Generator[Asked, Any, Draft | None]]


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """What a reply comes to."""

    kept: str  # what of it stays in the conversation
    query: str = ""  # what to search for; empty where it asks for nothing
    why: str = ""  # where there is no query: why the iterations end, for a reader


def start(task: Task, found: SearchState, name: str) -> tuple[Message, ...]:
    """Return the messages that a conversation begins with; its instruction is `prompts/<name>.md`."""
    return ask(task, template(name), found.evidence, name, rules=True).messages


def search_new(task: Task, found: SearchState, queries: Sequence[str]) -> Finding:
    """Search at once for all that was not searched before, and return what is known then, with a text for each query.
    No search is made where the evidence is placed, since none brings more, nor where all was asked before, which ends
    the iterations."""
    asked = list(dict.fromkeys(query for query in queries if fold(query) not in found.queries))
    known, repeated = (*found.queries, *map(fold, asked)), template("asked_before")
    if not asked:
        return replace(found, texts=(repeated,) * len(queries), fresh=0, over="it asks for what was asked before")
    if task.placed:
        return replace(found, texts=(template("all_shown"),) * len(queries), queries=known)
    evidence, texts = found.evidence, {}
    lists: list[Evidence] = yield from gather_each(task, asked, Task.gather)
    for query, one in zip(asked, lists, strict=True):
        if fresh := new_passages(evidence, one):  # set apart as the first documents are
            texts[query] = show_documents(task, fresh).removesuffix("\n\n")
        elif one:
            known_numbers = ": " + ", ".join(f"[{passage.number}]" for passage in one) if task.separators else ""
            texts[query] = fill("nothing_new", numbers=known_numbers)
        else:
            texts[query] = template("nothing_found")
        evidence = concatenate((evidence, one))
    count = len(evidence) - len(found.evidence)
    idle = 0 if count else found.idle + 1
    over = f"{_IDLE} iterations in a row brought nothing new" if idle >= _IDLE else ""
    return SearchState(evidence, tuple(texts.pop(query, repeated) for query in queries), count, over, known, idle)


def converse(task: Task, iterations: int, name: str, read: Callable[[str], ReadTurn], stop: tuple[str, ...] = (),
             otherwise: Otherwise | None = None) -> Recipe:
    """Search for the question; ask, search for what the reply says, show what that brought, and ask again; then ask for
    the answer. Under `closed-book`, where nothing can be searched, the answer is all that is asked for. Prompts are
    `<name>_first` and `<name>_next`, and calls are for `name`; `read` says what a reply comes to, and `stop` what ends
    it. `otherwise` is another way to go on from the first search, tried before; its None means that it cannot be
    gone."""
    if task.rules == "closed-book":
        return (yield from answer(task, "chain_of_thought", (), "no_search"))
    found = SearchState((yield from task.gather(task.question)), queries=(fold(task.question),))
    if otherwise and (drafted := (yield from otherwise(found))):
        return drafted
    talk, brought = start(task, found, f"{name}_first"), ""
    for iteration in range(iterations):
        if iteration:
            talk = (*talk, Message("user", (f"{brought}\n\n", template(f"{name}_next"))))
        reply: Reply = yield Generate(talk, name, shown_numbers(task, found.evidence), stop=stop)
        turn = read(reply.text)
        talk, brought = (*talk, assistant_message(turn.kept)), ""
        if not turn.query:
            yield Decision("stops", turn.why)
            break
        found = yield from search_new(task, found, [turn.query])
        brought = found.texts[0]
        yield next_step(task, iteration, iterations, found)
        if found.over:
            break
    return (yield from final_answer(task, talk, found.evidence, brought))


def next_step(task: Task, iteration: int, iterations: int, found: SearchState) -> Decision:
    """Return the decision that the next iteration begins, or why there is none."""
    if found.over:
        return Decision("stops", found.over)
    brought = "asks on: all evidence is placed" if task.placed else \
        f"brought {found.fresh} new passage{'s' * (found.fresh != 1)}"
    last = iteration + 1 == iterations
    return Decision("stops" if last else "goes on", f"iteration {iteration + 1} of {iterations} {brought}")


def final_answer(task: Task, talk: tuple[Message, ...], evidence: Evidence, brought: str = "",
              tools: tuple[Mapping[str, Any], ...] = ()) -> Recipe:
    """Make the call for the answer, which ends the conversation, and return the draft that its reply is. What the last
    search `brought` stands in it, where no message shows it yet, and so do the tools of the conversation, though none
    can be called any more: servers show them before all else, so that without them nothing would be known again."""
    last = fill("iterations_answer", question=task.question) + form_instruction(task)
    parts = (f"{brought}\n\n", last) if brought else (last,)
    call = ask_for_answer_in(task, (*talk, Message("user", parts)), evidence)
    call = replace(call, tools=tools, tool_choice="none" if tools else "auto")
    return (yield from draft(call, task, last=True))


def assistant_message(text: str, longest: int = _LONGEST_TURN) -> Message:
    """Return a reply as it stays in the conversation: bounded, without what ends a turn, and never empty."""
    return Message("assistant", (neutralize_turns(text.strip()[:longest]) or "(nothing)",))
