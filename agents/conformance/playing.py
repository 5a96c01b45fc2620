"""Playing a strategy in one situation with one stand-in, and looking at whatever it asks for.

The situations that a strategy has to manage: rules, answer formats, layouts, and evidence of several sorts.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NoReturn

from agents.conformance.stand_ins import StandIn
from agents.outcome import CallOutcome, wire_message
from agents.playback import Means, Playback
from agents.settings import Limits
from agents.types import Answer, DecisionStep
from documents.errors import RunError
from documents.types import Chunk, digest
from strategies.types import Exemplar, Failure, Generate, Reasoning, Retrieval, Search, Task

Finds = Literal["some", "same", "new", "nothing"]

TELLING = "goldhush"  # stands in whatever may tell where the gold is
_QUESTION = "Which city is the capital of France, and how many people lived in Paris in 2020?"
_SAID = ("Paris is the capital of France.", "In 2020 Paris had 2145906 people.", "Lyon lies on the Rhone.",
         "The Seine flows through Paris.", "Marseille is a port of France.")
_OPTIONS = (("A", "Paris"), ("B", "Lyon"), ("C", "Marseille"))
EXEMPLAR = Exemplar("Where does the Rhone end?", "In the sea [1]", ("The Rhone ends in the sea.",), "It says so.")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a question is asked like.

    Attributes:
        changes: of the task.
        finds: what searches find: some of five documents, by the query; the same ones always, as where evidence is
            placed beforehand; a new one each time, without end; or nothing.
    """

    name: str
    finds: Finds = "some"
    changes: dict[str, Any] = field(default_factory=dict)

    def task(self, retrieval: Retrieval) -> Task:
        """The question, asked like this."""
        return Task(id=f"{TELLING}-question", question=_QUESTION, retrieval=retrieval, placed=self.finds == "same",
                    seed=7, **self.changes)

    def found(self, search: Search, turn: int) -> list[Chunk]:
        """What a search finds.

        Args:
            turn: how many searches were made before it.
        """
        if self.finds == "nothing" or self.changes.get("rules") == "closed-book":
            return []
        if self.finds == "new":
            return [_chunk(turn, f"Report {turn} says that Paris is the capital of France.")]
        first = int(digest(search.query)[:6], 16) % len(_SAID) if self.finds == "some" else 0
        places = [first, (first + 1) % len(_SAID)] if self.finds == "some" else range(len(_SAID))
        return [_chunk(place, _SAID[place]) for place in places][:search.k]


def mark(number: int) -> str:
    """A word that stands in one document alone: that of the chunk with this number."""
    return f"zq{number}x"


def number_of(chunk: Chunk) -> int:
    """The number of a chunk among all that can be found."""
    return int(chunk.id.rpartition("-")[2])


def situations() -> Iterator[Situation]:
    """Every situation."""
    yield from (Situation(name, changes=changes) for name, changes in _CHANGES.items())
    yield Situation("the same evidence for every search", "same")
    yield Situation("new evidence for every search", "new")
    yield Situation("no evidence", "nothing")
    yield Situation("no evidence, as JSON", "nothing", {"answer_format": "json"})


_CHANGES: dict[str, dict[str, Any]] = {
    "grounded": {},
    "open": {"rules": "open"},
    "reading": {"rules": "reading"},
    "choice": {"rules": "choice", "options": _OPTIONS},
    "closed-book": {"rules": "closed-book", "about": "an atlas"},
    "closed-book with options": {"rules": "closed-book", "options": _OPTIONS},
    "grounded with options": {"options": _OPTIONS},
    "as JSON": {"answer_format": "json"},
    "choice, as JSON": {"answer_format": "json", "rules": "choice", "options": _OPTIONS},
    "closed-book, as JSON": {"answer_format": "json", "rules": "closed-book"},
    "without separators": {"separators": False},
    "without separators, as JSON": {"separators": False, "answer_format": "json"},
    "without framing": {"framing": "none"},
    "as published": {"layout": "as_published"},
    "as published, with exemplars": {"layout": "as_published", "exemplars": (EXEMPLAR,)},
    "brief, with exemplars": {"brief": True, "exemplars": (EXEMPLAR,)},
    "with exemplars, as JSON": {"exemplars": (EXEMPLAR,), "answer_format": "json"},
    "with sub-questions": {"sub_questions": ("What is the capital of France?", "How many live in #1?")},
    "with sub-answers": {"sub_questions": ("What is the capital of France?", "How many live in #1?"),
                         "with_sub_answers": True}}


def _chunk(number: int, said: str) -> Chunk:
    return Chunk(f"{TELLING}-{number}", f"{TELLING}-document-{number}", "plain", 0, 9, f"{said} {mark(number)}")


WIDE = Limits(calls=300, searches=300, tokens=10**12, seconds=1e9)
"""More than any question needs: what reaches them does not end."""


@dataclass(slots=True)
class Played:
    """What came of one play.

    Attributes:
        name: the situation and the stand-in.
        asked: in words and as a hash, each action and the end.
        problems: promises that were broken, with what was seen.
    """

    name: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    calls: int = 0
    searches: int = 0
    outcome: str = ""
    forms: list[str] = field(default_factory=list)


def play(reasoning: Reasoning, retrieval: Retrieval, situation: Situation, name: str, stand_in: StandIn,
         limits: Limits = WIDE) -> Played:
    """Play a strategy to its end."""
    played = Played(f"{situation.name}, with {name}")
    gold = f"the right answer, {TELLING}, which a recipe that looks around finds here"
    task = situation.task(retrieval)
    play = Playback(task, reasoning, Means(_unused, _unused, _unused, _unused, limits))
    _carry_on(play, played, situation, stand_in, task)
    _end(play, play.answer(), played)
    del gold
    return played


def _carry_on(play: Playback, played: Played, situation: Situation, stand_in: StandIn, task: Task) -> None:
    numbers: dict[int, int] = {}
    while play.node != "finish" and not play.stop_over_budget():
        if play.node == "search":
            found = []
            for search in play.searches():
                _look_at_search(search, played)
                chunks = situation.found(search, played.searches)
                for chunk in chunks:
                    numbers.setdefault(number_of(chunk), len(numbers) + 1)
                found.append(chunks)
                played.searches += 1
            play.take_found(found)
        else:
            replies = []
            for call in play.calls():
                _look_at_call(call, numbers, played)
                replies.append(CallOutcome("", stand_in(task, call, played.calls)))
                played.calls += 1
            play.take_asked(replies)


def _end(play: Playback, answer: Answer, played: Played) -> None:
    played.outcome = answer.outcome
    failure = answer.failure or Failure("", "")
    if failure.kind == "strategy":
        played.problems.append(("protocol", failure.message))
    for step in play.trace:
        if isinstance(step, DecisionStep):
            if TELLING in step.what + step.why:
                played.problems.append(("gold", f"the decision {step.what!r:.40} names what tells where the gold is"))
            _keep(played, f"decision {step.what!r:.40}", [step.what, step.why])
    if play.draft is not None:
        _keep(played, "its end", {**asdict(play.draft), "figures": dict(play.draft.figures)})
    _keep(played, f"the outcome {answer.outcome}", [answer.outcome, failure.kind])


def _look_at_search(search: Search, played: Played) -> None:
    _keep(played, f"search for {search.query!r:.60}", [search.query, search.k])
    if not search.query.strip():
        played.problems.append(("protocol", "searches for an empty text"))
    elif TELLING in search.query:
        played.problems.append(("gold", f"the query {search.query!r:.60} names what tells where the gold is"))


def _look_at_call(call: Generate, numbers: dict[int, int], played: Played) -> None:
    named = f"call {call.purpose!r:.40}"
    text = "\n".join(message.content for message in call.messages)
    _keep(played, named, _wired(call))
    if TELLING in text or TELLING in json.dumps(call.tools) + json.dumps(call.schema):
        played.problems.append(("gold", f"{named} shows an id, or what else tells where the gold is"))
    answers = call.purpose == "answer"
    undeclared = [number for found, number in numbers.items() if number not in call.shown and mark(found) in text
                  and (answers or f"[{number}]" in text)]
    if undeclared:
        played.problems.append(("shown", f"{named} shows document [{undeclared[0]}] and does not name it in `shown`"))
    unknown = [number for number in call.shown if number not in numbers.values()]
    if unknown:
        played.problems.append(("shown", f"{named} names [{unknown[0]}] in `shown`, which no search found"))
    if answers and _in_another_form(call, text):
        played.problems.append(("answers", f"{named} shows worked examples in another form than it asks for"))
    if call.schema is not None and "answer" in call.schema.get("properties", {}):
        played.forms.append("answer")


def _in_another_form(call: Generate, text: str) -> bool:
    """Whether worked examples, where there are any, stand in tags or fields and the answer is not asked for so, or the
    other way round."""
    tagged, field = f"<Answer>{EXEMPLAR.answer}</Answer>", f'"answer": "{EXEMPLAR.answer}"'
    fields, tags = call.schema is not None, call.schema is None and "<Answer>" in text.replace(tagged, "")
    return EXEMPLAR.question in text and (tagged in text, field in text) != (tags, fields)


def _wired(call: Generate) -> str:
    """The call as it is sent."""
    return json.dumps([[wire_message(message) for message in call.messages], call.purpose, call.shown,
                       call.schema, call.tools, call.sample, call.temperature, call.max_tokens, call.stop,
                       call.see_failure, call.effort], default=list)


def _keep(played: Played, said: str, content: Any) -> None:
    played.asked.append((said, digest(json.dumps(content, default=list))))


def _unused(*given: object) -> NoReturn:
    raise RunError("a check performs nothing")
