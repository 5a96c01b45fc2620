"""Searching by queries that a model writes: the call that asks for them, and gathering by several at once."""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from strategies.parts.weaving import Loom
from strategies.prompting import fill_quoting, system_message
from strategies.reading import read_answer
from strategies.types import Asked, Evidence, Gathering, Generate, Message, Reply, Task

_LONGEST_QUERY = 2_000  # characters; what is longer is no question, and embedders read less


def asking_for(name: str, purpose: str, **fields: str) -> Generate:
    """A call that shows no evidence, by `prompts/<name>.md`.

    The instruction is a piece of its own, so that it is stored once however many queries it is filled with.
    """
    text = fill_quoting(name, **fields)
    cut = text.index("\n<query>\n")
    return Generate((system_message(), Message("user", (text[:cut], text[cut:]))), purpose)


def said_in(reply: Reply) -> str:
    """What a reply says besides its thinking, on one line and no longer than a query may be."""
    return " ".join(read_answer(reply.text)[0][:_LONGEST_QUERY].split())


def gather_each(task: Task, queries: Sequence[str], over: Callable[[Task, str], Gathering]) \
        -> Generator[Asked, Any, list[Evidence]]:
    """What the retrieval finds for each query, in their order; what they ask for goes out together, of equal queries
    once."""
    distinct = list(dict.fromkeys(queries))
    found = dict(zip(distinct, (yield from Loom().weave([over(task, query) for query in distinct])), strict=True))
    return [found[query] for query in queries]
