"""Hold the live state of one question: its recipe, evidence numbers, budget and trace."""
from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn

from ragbed.agents.model_settings import PROMPT_CUT, Limits, is_prompt_cut
from ragbed.agents.replies import OnEvent
from ragbed.agents.search import request_json
from ragbed.agents.tools import TOOL_FAILED, ToolFunction, ToolOutput
from ragbed.agents.types import (
    Answer,
    CallOutcome,
    Cost,
    DecisionStep,
    GenerateStep,
    Outcome,
    SearchStep,
    Step,
    ToolStep,
)
from ragbed.documents.errors import RecipeFailed, RunError
from ragbed.documents.keys import redact_keys
from ragbed.documents.types import Chunk, Format, digest
from ragbed.strategies.answering import strip_sub_answers
from ragbed.strategies.choice import read_choice
from ragbed.strategies.protocol import MAX_DECISIONS, check_draft, list_actions
from ragbed.strategies.reading import is_only_citations, read_citations
from ragbed.strategies.types import (
    Action,
    Contexts,
    Decision,
    Draft,
    Failure,
    Generate,
    Passage,
    Reasoning,
    Reply,
    Search,
    Task,
    ToolCall,
    ToolResult,
    Usage,
)

Node = Literal["search", "call_tools", "generate", "finish"]
_NODES: Mapping[type[Action], Node] = {Search: "search", ToolCall: "call_tools", Generate: "generate"}
_OUTCOME_OF: Mapping[str, Outcome] = {"timeout": "timeout", "too_long": "too_long", "budget": "budget"}


def cannot_restore(*place: Any) -> NoReturn:
    """Raise RunError, because this player starts an unfinished question again instead of resuming it."""
    raise RunError(f"cannot look up the chunk {place[0]}; an unfinished question must start again")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The functions by which a session searches, calls tools and the model, and is resumed.

    Attributes:
        ask: makes one model call. Takes the deadline in `time.monotonic` seconds, and a callback for streamed pieces.
        span: returns a span of a document, as `Chunk.of` does, from the document's id; used to resume a question.
        tools: calls a tool; None if no tool is open.
        header: returns the header with which prompts show a chunk that a search found; empty for none.
    """

    search: Callable[[Search], Awaitable[Sequence[Chunk]]]  # returns the chunks of a search, best first
    ask: Callable[[Generate, float, OnEvent | None], Awaitable[CallOutcome]]
    key: Callable[[Generate], str]  # returns the journal key of a call; used to check a resumed question
    chunk: Callable[[str], Chunk]  # returns the chunk of an id; used to resume a question
    limits: Limits
    span: Callable[[str, Format, int, int, str], Chunk] = cannot_restore
    tools: ToolFunction | None = None
    header: Callable[[Chunk], str] = lambda chunk: ""


_MIN_SECONDS = 2.0  # seconds that a strategy always gets to yield, even after its question's deadline


@dataclass(slots=True)
class Session:
    """Runs a recipe: holds its pending actions, receives their results, and ends with an Answer.

    Attributes:
        numbers: evidence numbers that are fixed in advance, by chunk id, from 1 without gaps.
        started: start in `time.monotonic` seconds. For a resumed question it is shifted to leave out the interruption.
        reported: number of steps of the trace that were emitted as events.
        streaming: whether to emit events of steps and tokens.
        emit: called with each event; None to send them to LangGraph's stream.
    """

    task: Task
    reasoning: Reasoning
    runtime: Runtime
    numbers: Mapping[str, int] = field(default_factory=dict)
    draft: Draft | None = None
    failure: Failure | None = None
    pending: list[Action] = field(default_factory=list)
    trace: list[Step] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)
    started: float = field(default_factory=time.monotonic)
    reported: int = 0
    streaming: bool = False
    emit: Callable[[dict[str, Any]], None] | None = None
    _passages: dict[str, Passage] = field(default_factory=dict)
    _recipe: Any = None
    _is_list: bool = False
    _cut: bool = False
    _timed_until: float = 0.0

    def __post_init__(self) -> None:
        self._timed_until = self.started
        self._recipe = self.reasoning(self.task)
        self._send(None)

    @property
    def node(self) -> Node:
        """Return the next node of the graph."""
        if self.draft is not None or self.failure is not None:
            return "finish"
        return _NODES[type(self.pending[0])]

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Return the passages of all searches and tools so far, in order of arrival."""
        return tuple(self._passages.values())

    @property
    def deadline(self) -> float:
        return self.started + self.runtime.limits.seconds

    def pending_searches(self) -> list[Search]:
        return [action for action in self.pending if isinstance(action, Search)]

    def pending_tools(self) -> list[ToolCall]:
        return [action for action in self.pending if isinstance(action, ToolCall)]

    def pending_calls(self) -> list[Generate]:
        return [action for action in self.pending if isinstance(action, Generate)]

    @property
    def _tool_count(self) -> int:
        return sum(isinstance(step, ToolStep) for step in self.trace)

    @property
    def call_count(self) -> int:
        """Return the number of calls so far."""
        return sum(isinstance(step, GenerateStep) for step in self.trace)

    def end_if_over_budget(self) -> bool:
        """End the question if its pending actions would exceed its budget. Return whether it has ended."""
        limits = self.runtime.limits
        searched = sum(isinstance(step, SearchStep) for step in self.trace)
        if self.pending_searches() and searched + len(self.pending) > limits.searches:
            self._end(Failure("budget", f"limit of {limits.searches} searches per question reached"))
        elif self.pending_tools() and self._tool_count + len(self.pending) > limits.tools:
            self._end(Failure("budget", f"limit of {limits.tools} tool calls per question reached"))
        elif self.pending_calls() and self.call_count + len(self.pending) > limits.calls:
            self._end(Failure("budget", f"limit of {limits.calls} calls per question reached"))
        elif self.pending_calls() and self.usage.tokens >= limits.tokens:
            self._end(_token_limit(limits))
        return self.failure is not None

    def add_found(self, found: Sequence[Sequence[Chunk]]) -> dict[str, Any]:
        """Pass the chunks of the pending searches to the recipe, and continue. Return the entry for the state."""
        searches = self.pending_searches()
        entry = {"actions": [action_hash(search) for search in searches],
                 "found": [[chunk.id for chunk in chunks] for chunks in found], "seconds": self._seconds()}
        results = [self._number(chunks, self.runtime.header) for chunks in found]
        for search, evidence in zip(searches, results, strict=True):
            self.trace.append(SearchStep(search.query, tuple(passage.number for passage in evidence)))
        self._send(results if self._is_list else results[0])
        return entry

    def add_called(self, outputs: Sequence[ToolOutput]) -> dict[str, Any]:
        """Pass the results of the pending tool calls to the recipe, and continue. Return the entry for the state."""
        calls, results = self.pending_tools(), list[ToolResult]()
        for call, output in zip(calls, outputs, strict=True):
            failure = Failure(TOOL_FAILED, output.failure) if output.failure else None
            passages = iter(self._number([part for part in output.parts if isinstance(part, Chunk)]))
            parts = tuple(part if isinstance(part, str) else next(passages) for part in output.parts)
            results.append(ToolResult(parts, failure))
            self.trace.append(ToolStep(call.tool, call.arguments, tuple(
                part if isinstance(part, str) else part.number for part in parts), failure))
        entry = {"actions": [*map(action_hash, calls)], "called": [one.to_json() for one in outputs],
                 "seconds": self._seconds()}
        self._send(results if self._is_list else results[0])
        return entry

    def add_lost(self, failure: Failure) -> dict[str, Any]:
        """End the question because its pending searches or tool calls failed. Return the entry for the state."""
        searches, calls = self.pending_searches(), self.pending_tools()
        self.trace += [SearchStep(search.query, (), failure) for search in searches]
        self.trace += [ToolStep(call.tool, call.arguments, (), failure) for call in calls]
        self._end(failure)
        return {"actions": [*map(action_hash, searches), *map(action_hash, calls)],
                "lost": {"kind": failure.kind, "message": failure.message}, "seconds": self._seconds()}

    def add_replies(self, asked: Sequence[CallOutcome]) -> dict[str, Any]:
        """Pass the outcomes of the pending calls to the recipe, and continue. Return the entry for the state.

        The question ends if it has used too many tokens, even if these were its last calls.
        """
        entry = {"actions": [one.key for one in asked], "asked": [one.to_json() for one in asked],
                 "seconds": self._seconds()}
        ended: Failure | None = None
        for call, one in zip(self.pending_calls(), asked, strict=True):
            self._count_usage(call, one)
            if isinstance(one.outcome, Failure) and not call.see_failure:
                ended = ended or one.outcome
        if self.usage.tokens > self.runtime.limits.tokens:
            ended = _token_limit(self.runtime.limits)
        if ended:
            self._end(ended)
        else:
            results = [one.outcome for one in asked]
            self._send(results if self._is_list else results[0])
        return entry

    def answer(self) -> Answer:
        """Return the answer. Cited numbers that no prompt showed are in its `invalid_citations`."""
        if self.node != "finish":
            self.end_if_over_budget()  # a restored question may be over its budget, which its results do not tell
        common: dict[str, Any] = {"evidence": self.passages, "shown": self._shown_numbers(),
                                  "trace": tuple(self.trace), "usage": self.usage,
                                  "cost": replace(self.cost, seconds=time.monotonic() - self.started)}
        failure = self.failure or (self.draft.failure if self.draft else Failure("stopped", "the question was stopped"))
        if failure is not None or self.draft is None:
            assert failure is not None
            return Answer(_OUTCOME_OF.get(failure.kind, "error"), "", False, (), (), failure=failure, **common)
        draft = self.draft
        shown = {number for step in self._reasoning_steps() for number in step.shown}
        cited = draft.cited if self.task.separators else ()
        # An answer such as `[3, 7]` may be a list, not citations, unless documents with these numbers were shown.
        bare = self.task.separators and is_only_citations(draft.text) and shown.issuperset(read_citations(draft.text))
        chosen = read_choice(draft.text, self.task.options) is not None  # such as the option `Cannot be determined`
        outcome: Outcome = ("searched" if draft.gathered is not None else
                            "malformed" if bare or not draft.well_formed or (self.task.chooses and not chosen) else
                            "refused" if draft.refused and not chosen else "answered")
        return Answer(outcome, draft.text, outcome == "refused", tuple(n for n in cited if n in shown),
                      tuple(n for n in cited if n not in shown), tagged=draft.tagged,
                      notes=(*draft.notes, *[PROMPT_CUT] * self._cut), figures=draft.figures, **common)

    def _shown_numbers(self) -> tuple[int, ...]:
        """Return the evidence that was gathered, or shown in prompts of the reasoning strategy, in the order of the
        last answer prompt. If the question ended before any prompt showed evidence, return everything found."""
        calls = self._reasoning_steps()
        last = next((call.shown for call in reversed(calls) if call.purpose == "answer"), ())
        order = [*last, *(number for call in calls for number in call.shown)]
        if self.draft is not None and self.draft.gathered is not None:
            order = [*self.draft.gathered]
        known = dict.fromkeys(passage.number for passage in self._passages.values())
        shown = dict.fromkeys(number for number in order if number in known)
        return tuple(shown if shown or self.draft else known)

    def _reasoning_steps(self) -> list[GenerateStep]:
        # calls of the reasoning strategy, not those that gathered evidence
        return [step for step in self.trace if isinstance(step, GenerateStep) and not step.gathering]

    def _end(self, failure: Failure) -> None:
        self.failure = failure
        with suppress(RecipeFailed):  # errors after the end do not matter
            self._run_recipe(self._recipe.close)

    def _seconds(self) -> float:
        now = time.monotonic()
        taken, self._timed_until = now - self._timed_until, now
        return round(taken, 3)

    def _send(self, value: Any) -> None:
        """Run the recipe up to its next actions. The question ends if a user's strategy raises, breaks the protocol, or
        makes endless decisions."""
        try:
            try:
                asked = self._next(value)
                self._is_list, self.pending = isinstance(asked, list), list_actions(asked)
            except StopIteration as end:
                self.draft, self.pending = strip_sub_answers(check_draft(end.value), self.task), []
        except RecipeFailed as error:
            self._end(Failure("strategy", redact_keys(str(error))))

    def _next(self, value: Any) -> Any:
        """Return the recipe's next actions, skipping decisions and empty lists, which need no work."""
        for _ in range(MAX_DECISIONS):
            asked = self._run_recipe(self._recipe.send, value)
            if isinstance(asked, Decision):
                self.trace.append(DecisionStep.of(asked))
            elif isinstance(asked, Contexts):
                value = self._read(asked)
                continue
            elif asked != []:
                return asked
            value = [] if asked == [] else None
        raise RecipeFailed(f"the strategy made {MAX_DECISIONS} decisions in a row without a search or a call")

    def _number(self, chunks: Sequence[Chunk], header: Callable[[Chunk], str] = lambda chunk: "",
                ) -> tuple[Passage, ...]:
        known = self._passages
        taken = len(self.numbers.keys() | known)
        for chunk in chunks:
            if chunk.id not in known:
                number = self.numbers.get(chunk.id)
                taken += number is None
                known[chunk.id] = Passage(number or taken, chunk, header(chunk))
        return tuple(known[chunk.id] for chunk in chunks)

    def _read(self, contexts: Contexts) -> tuple[Passage, ...]:
        """Number the chunks that the last call reports as read. They count as shown in its prompt."""
        evidence = self._number(contexts.chunks)
        place, last = next((place, step) for place, step in reversed([*enumerate(self.trace)])
                           if isinstance(step, GenerateStep))
        self.trace[place] = replace(last, shown=tuple(dict.fromkeys(passage.number for passage in evidence)))
        return evidence

    def _run_recipe(self, goes_on: Callable[..., Any], *given: Any) -> Any:
        until = max(self.deadline, time.monotonic() + _MIN_SECONDS)  # noqa: F841  # the watchdog reads it off the stack
        return goes_on(*given)

    def _count_usage(self, action: Generate, one: CallOutcome) -> None:
        reply = one.outcome if isinstance(one.outcome, Reply) else Reply("", finish_reason="")
        failure = one.outcome if isinstance(one.outcome, Failure) else None
        self.trace.append(GenerateStep(action.purpose, one.key, action.messages, action.shown, reply.text,
                                       reply.reasoning, reply.finish_reason, reply.usage, failure,
                                       reply.tool_calls, action.gathering))
        self._cut = self._cut or (action.counted and is_prompt_cut(action.messages, reply.usage))
        self.usage += reply.usage
        self.cost += one.cost


def _token_limit(limits: Limits) -> Failure:
    return Failure("budget", f"limit of {limits.tokens} tokens per question reached")


def action_hash(action: Search | ToolCall) -> str:
    """Return the hash of a search or of a tool's call."""
    if isinstance(action, Search):
        return digest("search", action.query, str(action.k))
    return digest("tool", action.tool, request_json(action.arguments))


def evidence_of(answer: Answer) -> tuple[Passage, ...]:
    """Return the cited passages in order of first mention."""
    by_number = {passage.number: passage for passage in answer.evidence}
    return tuple(by_number[number] for number in answer.cited)
