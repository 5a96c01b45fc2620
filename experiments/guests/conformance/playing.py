"""Play a strategy in many situations with many scripted models, and look for broken promises in its requests."""
from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, cast

from ragbed.agents.model_settings import Limits
from ragbed.agents.scripted import answer_reply, drive, tool_call_reply, unsatisfied_reply
from ragbed.agents.tools import ToolOutput
from ragbed.agents.types import Answer, Cost, DecisionStep
from ragbed.documents.errors import RecipeFailed
from ragbed.documents.types import Chunk, digest
from ragbed.documents.user_code import UserCode
from ragbed.strategies.answering import answer
from ragbed.strategies.catalogue import RETRIEVAL
from ragbed.strategies.history import with_history
from ragbed.strategies.prompting import PROMPT_VARIANTS
from ragbed.strategies.reading import REFUSAL
from ragbed.strategies.settings.strategy_config import Strategy
from ragbed.strategies.types import (
    Draft,
    Evidence,
    Exemplar,
    Failure,
    Generate,
    Recipe,
    Reply,
    Retrieval,
    Search,
    Task,
    ToolCall,
    ToolSpec,
    Turn,
    Usage,
)

_WIDE = Limits(calls=300, searches=300, tools=2_000, tokens=10**12, seconds=1e9)  # only an endless strategy reaches it
_LIMITS = (Limits(calls=1), Limits(calls=2), Limits(searches=0), Limits(searches=1), Limits(tokens=150))
_MAX_STEPS = 700  # number of steps of a play to compare one by one
_CANARY = "goldhush"  # word in every id that could reveal the gold
_QUESTION = "Which city is the capital of France, and how many people lived in Paris in 2020?"
_TEXTS = ("Paris is the capital of France.", "In 2020 Paris had 2145906 people.", "Lyon lies on the Rhone.",
          "The Seine flows through Paris.", "Marseille is a port of France.")
_PARTS = ("What is the capital of France?", "How many live in #1?")
_OPTIONS = (("A", "Paris"), ("B", "Lyon"), ("C", "Marseille"))
_EXEMPLAR = Exemplar("Where does the Rhone end?", "In the sea [1]", ("The Rhone ends in the sea.",), "It says so.")
_TURNS = (Turn("Where is Lyon?", "In France [1].\n[2]\n</conversation>"), Turn("", ""))
_FEW, _ALL = 7, 99
_JSON = {"answer_format": "json"}
_TOOL = ToolSpec("search", "Search the documents.", {
    "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]})


class Situation(NamedTuple):
    """A question, and the results of its searches.

    Attributes:
        changes: fields of the task.
        finds: what searches return: two of five documents by query, all five, a new one each time, or none.
        models: how many of `_MODELS` to play.
    """

    name: str
    changes: Mapping[str, Any] = {}
    finds: Literal["some", "same", "new", "nothing"] = "some"
    models: int = 2


_SITUATIONS = (
    Situation("grounded", models=_ALL),
    Situation("as JSON", _JSON, models=_ALL),
    Situation("new evidence for every search", finds="new", models=_ALL),
    Situation("choice", {"rules": "choice", "options": _OPTIONS}, models=_FEW),
    Situation("closed-book", {"rules": "closed-book", "about": "an atlas"}, models=_FEW),
    Situation("with sub-answers", {"sub_questions": _PARTS, "with_sub_answers": True}, models=_FEW),
    Situation("no evidence", finds="nothing", models=_FEW),
    Situation("without separators, as JSON", {"separators": False, **_JSON}, models=_FEW),
    Situation("open", {"rules": "open"}), Situation("reading", {"rules": "reading"}),
    Situation("closed-book with options", {"rules": "closed-book", "options": _OPTIONS}),
    Situation("grounded with options", {"options": _OPTIONS}),
    Situation("choice, as JSON", {"rules": "choice", "options": _OPTIONS, **_JSON}),
    Situation("closed-book, as JSON", {"rules": "closed-book", **_JSON}),
    Situation("without separators", {"separators": False}), Situation("without framing", {"framing": "none"}),
    Situation("as published", {"layout": "as_published"}),
    Situation("as published, with exemplars", {"layout": "as_published", "exemplars": (_EXEMPLAR,)}),
    Situation("brief, with exemplars", {"brief": True, "exemplars": (_EXEMPLAR,)}),
    Situation("with exemplars, as JSON", {"exemplars": (_EXEMPLAR,), **_JSON}),
    Situation("with sub-questions", {"sub_questions": _PARTS}),
    Situation("the same evidence for every search", finds="same"),
    Situation("no evidence, as JSON", _JSON, "nothing"),
    *(Situation(f"prompt variant {number}", {"prompt_variant": number}) for number in range(2, PROMPT_VARIANTS + 1)))

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
_ANSWERS, _REFUSES, _WANTS = "a model that answers", "a model that refuses", "a model that is never satisfied"
_NO_TOOLS = Failure("http_400", "this server has no tools")
# Each function replies to a call, given the number of earlier calls.
_MODELS: Mapping[str, Callable[[Task, Generate, int], Reply | Failure]] = {
    _ANSWERS: lambda task, call, turn: answer_reply(
        call, "A" if task.chooses else f"Paris{' [1]' if task.cites else ''}"),
    _REFUSES: lambda task, call, turn: answer_reply(call, REFUSAL, refused=True),
    _WANTS: lambda task, call, turn: unsatisfied_reply(call),
    "a model with malformed replies": lambda task, call, turn: Reply(_MALFORMED[turn % len(_MALFORMED)]),
    "a model with truncated replies": lambda task, call, turn: Reply("<Thinking>Par", finish_reason="length"),
    "a model with JSON of another form": lambda task, call, turn: Reply(
        "{}", parsed=_PARSED[turn % len(_PARSED)]),
    "a model that always replies a list": lambda task, call, turn: unsatisfied_reply(call, lists=True),
    "a model that first misses something": lambda task, call, turn: (
        _MODELS[_ANSWERS](task, call, turn) if turn else Reply("Missing: the other parts\nSufficiency: 1")),
    "a model that calls tools once": lambda task, call, turn: _MODELS[_ANSWERS if turn else _WANTS](task, call, turn),
    "a server without tools": lambda task, call, turn: (
        _NO_TOOLS if call.tools else _MODELS[_ANSWERS](task, call, turn)),
    "a server without tools, with a model that is never satisfied": lambda task, call, turn: (
        _NO_TOOLS if call.tools else _MODELS[_WANTS](task, call, turn)),
    "a model that calls tools wrongly": lambda task, call, turn: (
        replace(tool_call_reply([]), tool_calls=_BAD_CALLS[turn % 3 * (turn % 2):]) if call.tools else
        _MODELS[_ANSWERS](task, call, turn)),
    "a server that fails": lambda task, call, turn: Failure("http_500", "the server failed")}


def examine(strategy: Strategy, begins: Callable[[], object], again: bool) -> dict[str, Any]:
    """Play a strategy in every situation.

    Args:
        begins: function to call before each play.
        again: play everything a second time in reverse order, and compare.

    Returns:
        `problems`: broken promises, each with a description. `asked`: the actions of each play, as text and hash.
        `calls`, `searches`: the maximum in any play. `reached`: the promises that the plays could test.
    """
    plays = [_Play(strategy, one, model) for one in _SITUATIONS for model in islice(_MODELS, one.models)]
    plays.sort(key=lambda play: play.model not in (_ANSWERS, _REFUSES))
    done, ends = list[_Play](), True
    while ends and len(done) < len(plays):  # if one play does not end, many others will not either
        begins()
        done.append(plays[len(done)])
        ends = done[-1].run().outcome != "budget"
    problems = [(promise, f"{what} ({play.name})") for play in done for promise, what in play.problems]
    reached = ["answers", "shown", "gold"] * any({promise for promise, _ in play.problems} <= {"answers", "ends"}
                                                 for play in done)
    for promise, problem in (("stateless", _differs(plays if again else [], begins)),
                          ("limits", _stops(strategy, begins, bool(problems)))) if ends else ():
        problems += [(promise, problem)] if problem else []
        reached += [] if problem is None else [promise]
    return {"problems": problems, "reached": reached, "asked": {play.name: _limit_steps(play.asked) for play in done},
            "calls": max(play.calls for play in done), "searches": max(play.searches for play in done)}


def _limit_steps(asked: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Combine the steps after the first ones into one, because endless decisions would fill the results file."""
    rest = asked[_MAX_STEPS:]
    return [*asked[:_MAX_STEPS], *([("the rest", digest(json.dumps(rest)))] if rest else [])]


def _differs(plays: Sequence[_Play], begins: Callable[[], object]) -> str:
    for play in reversed(plays):
        begins()
        other = _Play(play.strategy, play.situation, play.model)
        other.run()
        if apart := difference(play.asked, other.asked):
            return f"repeated after other questions, {apart} ({play.name})"
    return ""


def difference(asked: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> str:
    """Describe where two plays first differ; return an empty string if they are equal."""
    for place, (one, two) in enumerate(zip(asked, other, strict=False), 1):
        if list(one) != list(two):
            change = "with different content" if one[0] == two[0] else f"then {two[0]}"
            return f"step {place} differs: {one[0]}, {change}"
    return "" if len(asked) == len(other) else f"one has {len(asked)} steps, the other {len(other)}"


def _stops(strategy: Strategy, begins: Callable[[], object], reported: bool) -> str | None:
    """Describe what a strategy does wrong when it is stopped. Return an empty string if it ends, and None if it raises
    because of a protocol error that is already reported.
    """
    for limits in _LIMITS:
        begins()
        play = _Play(strategy, _SITUATIONS[0], _WANTS, limits)
        try:
            with UserCode(RecipeFailed):
                play.run()
        except RecipeFailed as error:
            goes_on = isinstance(error.__cause__, RuntimeError)
            problem = f"{'continues after it was' if goes_on else 'raises when it is'} stopped: {error}"
            return problem if goes_on or not reported else None
        if play.problems:
            return None
    return ""


class _Play:
    """One play of a strategy, with `asked` and `problems` as in `examine`."""

    def __init__(self, strategy: Strategy, situation: Situation, model: str, limits: Limits = _WIDE) -> None:
        self.strategy, self.situation, self.model, self.limits = strategy, situation, model, limits
        self.name = f"{situation.name}, with {model}"
        self.asked, self.problems = list[tuple[str, str]](), list[tuple[str, str]]()
        self.calls = self.searches = 0
        self._numbers, self._fields = dict[int, int](), False
        self._answer: str | None = None  # the text of the reply to the final call

    def run(self) -> Answer:
        """Play the strategy to its end, and check every action and the answer."""
        gold = f"the right answer, {_CANARY}, which a recipe that inspects its callers finds here"
        function, changes = self.strategy.function, self.situation.changes
        if self.limits is not _WIDE:  # without the guard that turns exceptions into outcomes
            function = partial(inspect.unwrap(getattr(function, "func", function)), **getattr(function, "keywords", {}))
        family, closed = self.strategy.family, changes.get("rules") == "closed-book"
        retrieval = function if family == "retrieval" else RETRIEVAL["none" if closed else "once"]
        played = {"retrieval": _searches, "history": with_history(function, _answers)}.get(family, function)
        task = Task(id=f"{_CANARY}-question", question=_QUESTION, retrieval=cast(Retrieval, retrieval), seed=7,
                    placed=self.situation.finds == "same", turns=_TURNS if family == "history" else (),
                    tools=(_TOOL,) if self.strategy.tools else (), **changes)
        ended = drive(played, task,
                      lambda calls: [self._reply(task, call) for call in calls],
                      lambda searches: [self._search(search, closed) for search in searches], self.limits,
                      lambda calls: [self._call_tool(call, closed) for call in calls])
        self._check_end(task, ended)
        del gold
        return ended

    def _search(self, search: Search, closed: bool) -> list[Chunk]:
        self._record_step(f"search for {search.query!r:.60}", [search.query, search.k])
        self._report("protocol", not search.query.strip(), "searches for an empty string")
        self._report("gold", _CANARY in search.query,
                   f"the query {search.query!r:.60} contains an id that reveals the gold")
        first, turn = int(digest(search.query)[:6], 16), self.searches
        texts = {"some": {place % 5: _TEXTS[place % 5] for place in (first, first + 1)}, "nothing": {},
                 "same": dict(enumerate(_TEXTS)), "new": {turn: f"Report {turn} says that {_TEXTS[0]}"}}
        chunks = [Chunk(f"{_CANARY}-{number}", f"{_CANARY}-document-{number}", "plain", 0, 9, f"{text} zq{number}x")
                  for number, text in texts["nothing" if closed else self.situation.finds].items()][:search.k]
        for chunk in chunks:
            self._numbers.setdefault(int(chunk.id.rpartition("-")[2]), len(self._numbers) + 1)
        self.searches += 1
        return chunks

    def _call_tool(self, call: ToolCall, closed: bool) -> ToolOutput:
        text = json.dumps(call.arguments)
        self._report("gold", _CANARY in text, f"the arguments {text:.60} contain an id that reveals the gold")
        query = call.arguments.get("query") if call.tool == _TOOL.name else None
        if not isinstance(query, str) or not query.strip():
            self._record_step(f"call of {call.tool!r:.60}", text)
            return ToolOutput(failure="There is one tool, search, with the argument query.")
        return ToolOutput(("Found:", *self._search(Search(query), closed)))

    def _reply(self, task: Task, call: Generate) -> Reply | Failure:
        named, final = f"call {call.purpose!r:.40}", call.purpose == "answer"
        text = "\n".join(message.content for message in call.messages)
        self._record_step(named, repr(call))
        self._report("gold", _CANARY in text + json.dumps([call.tools, call.schema]),
                   f"{named} shows an id or another text that reveals the gold")
        self._report("answers", self._answer is not None, f"{named} follows a call for the final answer")
        undeclared = [number for found, number in self._numbers.items() if number not in call.shown
                      and f"zq{found}x" in text and (final or f"[{number}]" in text)]
        self._report("shown", undeclared, f"{named} shows document {undeclared[:1]} without declaring it in `shown`")
        unknown = [number for number in call.shown if number not in self._numbers.values()]
        self._report("shown", unknown, f"{named} declares {unknown[:1]} in `shown`, which no search found")
        tagged, fields = f"<Answer>{_EXEMPLAR.answer}</Answer>", f'"answer": "{_EXEMPLAR.answer}"'
        wanted = call.schema is None and "<Answer>" in text.replace(tagged, ""), call.schema is not None
        self._report("answers", final and _EXEMPLAR.question in text and (tagged in text, fields in text) != wanted,
                   f"{named} shows examples in another form than it requests")
        self._fields |= call.schema is not None and "answer" in call.schema.get("properties", {})
        reply = _MODELS[self.model](task, call, self.calls)
        self.calls += 1
        if call.answers is not None and isinstance(reply, Reply):
            self._answer = Draft.from_reply(reply, form=call.answers).text
        return replace(reply, usage=Usage(100, 10, calls=1)) if isinstance(reply, Reply) else reply

    def _check_end(self, task: Task, ended: Answer) -> None:
        outcome, grounded = ended.outcome, task.rules == "grounded"
        last = self._answer is not None and ended.failure is None and not task.with_sub_answers
        self._report("answers", last and self._answer != ended.text,
                   "returns another answer than the reply to its final call")
        if ended.failure is not None and ended.failure.kind == "strategy":
            self.problems.append(("protocol", ended.failure.message))
        for step in ended.trace:
            if isinstance(step, DecisionStep):
                self._report("gold", _CANARY in step.what + step.why,
                           f"the decision {step.what!r:.40} contains an id that reveals the gold")
                self._record_step(f"decision {step.what!r:.40}", [step.what, step.why])
        self._record_step(f"the end, {outcome}", repr(replace(ended, trace=(), cost=Cost())))
        if self.problems or self.limits is not _WIDE or outcome == "searched":
            return
        good, refuses = (outcome != "budget" and self.model == model for model in (_ANSWERS, _REFUSES))
        self._report("ends", outcome == "budget",
                   f"does not end within {_WIDE.calls} calls and {_WIDE.searches} searches")
        self._report("answers", good and not (outcome == "answered" or (outcome == "refused" and grounded)),
                   f"a good reply becomes {outcome}")
        self._report("answers", good and task.answer_format == "json" and self.calls and not self._fields,
                   "no call requests the fields of an answer")
        self._report("answers", refuses and grounded and outcome != "refused", f"a refusal becomes {outcome}")
        self._report("answers", "server without tools" in self.model and outcome == "error",
                   "fails if the server has no tools")

    def _report(self, promise: str, broken: object, what: str) -> None:
        self.problems += [(promise, what)] if broken else []

    def _record_step(self, what: str, content: Any) -> None:
        self.asked.append((what, digest(json.dumps(content))))


def _answers(task: Task) -> Recipe:
    return (yield from answer(task, "chain_of_thought", (yield from task.gather(task.question))))


def _searches(task: Task) -> Recipe:
    evidence: Evidence = yield from task.gather(task.question)
    more: Evidence = yield from task.gather("Who built the bridge?")
    both = {passage.number: passage for passage in (*evidence, *more)}
    return (yield from answer(task, "direct", tuple(both.values()), thinks=False))
