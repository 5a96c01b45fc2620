"""What a strategy is played with: situations of a question, and models that no strategy may stumble over."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agents.scripted import answering, calling, never_content
from documents.types import Chunk, digest
from strategies.reading import REFUSAL
from strategies.types import Exemplar, Failure, Generate, Reply, Retrieval, Search, Task

TELLING = "goldhush"  # stands in whatever may tell where the gold is
_QUESTION = "Which city is the capital of France, and how many people lived in Paris in 2020?"
_TEXTS = ("Paris is the capital of France.", "In 2020 Paris had 2145906 people.", "Lyon lies on the Rhone.",
          "The Seine flows through Paris.", "Marseille is a port of France.")
_PARTS = ("What is the capital of France?", "How many live in #1?")
_OPTIONS = (("A", "Paris"), ("B", "Lyon"), ("C", "Marseille"))
EXEMPLAR = Exemplar("Where does the Rhone end?", "In the sea [1]", ("The Rhone ends in the sea.",), "It says so.")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a question is like.

    Attributes:
        finds: what searches find: some of five documents, by the query; the same ones always, as where evidence is
            placed beforehand; a new one each time, without end; or nothing.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the task
    finds: Literal["some", "same", "new", "nothing"] = "some"
    models: int = 2  # how many of `MODELS` it is played with

    @property
    def rules(self) -> str:
        return str(self.changes.get("rules", "grounded"))

    def task(self, retrieval: Retrieval) -> Task:
        """Return the question, asked like this."""
        return Task(id=f"{TELLING}-question", question=_QUESTION, retrieval=retrieval, placed=self.finds == "same",
                    seed=7, **self.changes)

    def found(self, search: Search, turn: int) -> list[Chunk]:
        """Return the chunks of a search, before which so many were made."""
        if self.finds == "nothing" or self.rules == "closed-book":
            return []
        if self.finds == "new":
            return [_chunk(turn, f"Report {turn} says that Paris is the capital of France.")]
        first, count = (int(digest(search.query)[:6], 16), 2) if self.finds == "some" else (0, len(_TEXTS))
        places = [place % len(_TEXTS) for place in range(first, first + count)]
        return [_chunk(place, _TEXTS[place]) for place in places][:search.k]


def _chunk(number: int, text: str) -> Chunk:
    return Chunk(f"{TELLING}-{number}", f"{TELLING}-document-{number}", "plain", 0, 9, f"{text} {mark(number)}")


def mark(number: int) -> str:
    """Return a word that stands in the chunk of this number alone."""
    return f"zq{number}x"


_FEW, _ALL = 7, 99
_JSON = {"answer_format": "json"}
SITUATIONS = (
    Situation("grounded", models=_ALL),
    Situation("as JSON", _JSON, models=_ALL),
    Situation("new evidence for every search", finds="new", models=_ALL),
    Situation("choice", {"rules": "choice", "options": _OPTIONS}, models=_FEW),
    Situation("closed-book", {"rules": "closed-book", "about": "an atlas"}, models=_FEW),
    Situation("with sub-answers", {"sub_questions": _PARTS, "with_sub_answers": True}, models=_FEW),
    Situation("no evidence", finds="nothing", models=_FEW),
    Situation("without separators, as JSON", {"separators": False, **_JSON}, models=_FEW),
    Situation("open", {"rules": "open"}),
    Situation("reading", {"rules": "reading"}),
    Situation("closed-book with options", {"rules": "closed-book", "options": _OPTIONS}),
    Situation("grounded with options", {"options": _OPTIONS}),
    Situation("choice, as JSON", {"rules": "choice", "options": _OPTIONS, **_JSON}),
    Situation("closed-book, as JSON", {"rules": "closed-book", **_JSON}),
    Situation("without separators", {"separators": False}),
    Situation("without framing", {"framing": "none"}),
    Situation("as published", {"layout": "as_published"}),
    Situation("as published, with exemplars", {"layout": "as_published", "exemplars": (EXEMPLAR,)}),
    Situation("brief, with exemplars", {"brief": True, "exemplars": (EXEMPLAR,)}),
    Situation("with exemplars, as JSON", {"exemplars": (EXEMPLAR,), **_JSON}),
    Situation("with sub-questions", {"sub_questions": _PARTS}),
    Situation("the same evidence for every search", finds="same"),
    Situation("no evidence, as JSON", _JSON, "nothing"))

ReplyTo = Callable[[Task, Generate, int], Reply | Failure]
"""What is replied to a call, before which so many were made."""

_MALFORMED = (
    "", " \n ", "{", "null", "[1, 2", "<Answer>", "</Answer><Answer></Answer>", "\ufffd\u0000", "1.\n2.\n-\n",
    "Search:", "search[", '{"answer": null}', "[999] [0]", "(" * 500, "x" * 5_000, "| a |\n|---|\n| 1",
    "1 / 0 ** 99999", "<think>", "Yes? No!", "\u202e\u2028", "".join(f"{n}. What is {n}?\n" for n in range(400)))
_PARSED: tuple[Any, ...] = (None, [], 5, "text", {}, {"answer": 5, "citations": "x", "refused": "no"},
                            {"answer": ["a"], "citations": [None, True, 1.5, 10**30]}, {"items": [[[]]]})
_BAD_CALLS: tuple[Mapping[str, Any], ...] = (
    {"id": "a", "type": "function", "function": {"name": "search", "arguments": "{"}},
    {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"other": 1}'}}, {},
    {"id": None, "type": "function", "function": {"name": "none_such", "arguments": None}}, {"function": []})


def answers(task: Task, call: Generate, turn: int) -> Reply:
    return answering(call, "A" if task.chooses else f"Paris{' [1]' if task.cites else ''}")


def refuses(task: Task, call: Generate, turn: int) -> Reply:
    return answering(call, REFUSAL, refused=True)


def wants(task: Task, call: Generate, turn: int) -> Reply:
    return never_content(call)


def _without_tools(other: ReplyTo) -> ReplyTo:
    return lambda task, call, turn: (Failure("http_400", "this server has no tools") if call.tools else
                                     other(task, call, turn))


def _calls_badly(task: Task, call: Generate, turn: int) -> Reply:
    bad = replace(calling([]), tool_calls=_BAD_CALLS[turn % 3:] if turn % 2 else _BAD_CALLS)
    return bad if call.tools else answers(task, call, turn)


MODELS: Mapping[str, ReplyTo] = {
    "a model that answers": answers,
    "a model that refuses": refuses,
    "a model that wants ever more": wants,
    "a model that replies nothing of use": lambda task, call, turn: Reply(_MALFORMED[turn % len(_MALFORMED)]),
    "a model whose replies are cut": lambda task, call, turn: Reply("<Thinking>Par", finish_reason="length"),
    "a model that replies JSON of another form": lambda task, call, turn: Reply(
        "{}", parsed=_PARSED[turn % len(_PARSED)]),
    "a model that always replies a list": lambda task, call, turn: never_content(call, lists=True),
    "a model that lacks something at its first look": lambda task, call, turn: (
        answers(task, call, turn) if turn else Reply("Missing: the other parts\nSufficiency: 1")),
    "a model that calls tools once": lambda task, call, turn: (answers if turn else wants)(task, call, turn),
    "a server without tools": _without_tools(answers),
    "a server without tools, whose model wants ever more": _without_tools(wants),
    "a model that calls tools wrongly": _calls_badly,
    "a server that fails": lambda task, call, turn: Failure("http_500", "the server failed")}
