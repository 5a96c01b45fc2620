"""Answer one turn of a chat: emit its events, stream its text, and record it even if the client disconnects."""
from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ragbed.agents.graph import Event
from ragbed.agents.types import Answer, ToolStep, failed_answer
from ragbed.documents.errors import CallError, RecipeMismatch, RunError, SettingsError, UserError
from ragbed.documents.http import sanitize_line
from ragbed.documents.keys import redact_keys
from ragbed.documents.types import replace_surrogates
from ragbed.experiments.cells import short_name
from ragbed.experiments.guests.access.access import Access
from ragbed.experiments.guests.operations.alternatives import Alternatives
from ragbed.experiments.guests.operations.failures import hide_answer, hide_event
from ragbed.experiments.guests.operations.spending import Spending
from ragbed.experiments.guests.operations.turn_times import TurnTimes
from ragbed.experiments.guests.serving.answer_json import answer_json, call_json, display_text, passage_json, step_json
from ragbed.experiments.guests.serving.answer_stream import AnswerStream, join_pieces
from ragbed.experiments.guests.serving.model_calls import TASKS, answer_call
from ragbed.experiments.guests.serving.size_limits import SizeLimits
from ragbed.experiments.guests.traffic.postgres_traffic import database_errors
from ragbed.experiments.guests.traffic.turns import ChatTurn
from ragbed.strategies.types import Failure, Generate, Turn

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.agents.session import Session
    from ragbed.experiments.guests.serving.configurations import Configuration
    from ragbed.experiments.guests.traffic.traffic import Traffic

_LOG = logging.getLogger("ragbed")
_STOPPED = Failure("stopped", "the client disconnected, or the server was stopped")
_WITHHELD = Failure("withheld", "This answer is based on documents that your key may no longer read")
_UNSTORED = Failure("store", "the server cannot store answers now; try again later")
_INTERNAL = Failure("internal", "internal error; see the server's log")


Observer = Callable[[ChatTurn, Answer, TurnTimes], None]  # called with every answer


class ChatSessions:
    """Answers turns with the served configurations, and records them."""

    def __init__(self, configurations: dict[str, Configuration], traffic: Traffic, observers: Sequence[Observer] = (),
                 limits: SizeLimits | None = None, access: Access | None = None, spend: str = "") -> None:
        self.configurations, self.traffic, self._observers = configurations, traffic, observers
        self.limits, self.access = limits or SizeLimits(), access or Access((), lambda owner: {})
        self.alternatives = Alternatives(traffic.last_deletion)
        self.spending = Spending(spend, self.access.claims)
        self._threads: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Stop the questions that are being answered, and wait until their records are kept."""
        for task in self._tasks:
            _cancel_once(task)
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def start(self, owner: str, question: str, requested: str | None = None, thread: str | None = None,
                    history: Sequence[Turn] | None = None, where: tuple[str, ...] = (),
                    basis: Sequence[str] = ()) -> ChatTurn:
        """Create and keep the next turn of a thread, or the first of a new one. `where` has further conditions on the
        chunks to search, and `basis` what the history is based on (see `Access.basis`).

        Raises SettingsError if the configuration, the thread or a field in `where` is unknown, the question is empty,
        the thread is already being answered, or the owner may no longer read what it is based on. Raises TooLong if the
        question or its history is too long.
        """
        if requested is not None and requested not in self.configurations:
            raise SettingsError(f"no configuration {requested!r:.100}; available: {', '.join(self.configurations)}")
        if not question.strip():
            raise SettingsError("the question is empty")
        self.limits.check_question(question)
        self.limits.check_history(history or ())
        is_new = thread is None or history is not None
        position = len(history or ()) if is_new else await self.traffic.position(str(thread), owner)
        self.limits.check_position(position)
        thread = thread or uuid4().hex
        name, probability = await self.traffic.choose(thread, requested)
        record = f"{thread}-{position}" if history is None else uuid4().hex
        earlier = None if history is None else tuple(
            Turn(replace_surrogates(one.question), replace_surrogates(one.answer)) for one in history)
        if not is_new and self.access.rules and thread not in self._threads:
            basis = await self._basis(thread, owner)
        configuration = self.configurations[name]
        narrowed = configuration
        if self.access.rules:
            narrowed = await asyncio.to_thread(self.access.narrow, configuration, owner)
        configured, assistant = ((one.threads if history is None else one.assistant)
                                 for one in (configuration, narrowed))
        if where:  # in a thread, because every chunk's fields are read
            assistant = await asyncio.to_thread(assistant.with_filter, where)
        turn = ChatTurn(record, thread, position, owner, replace_surrogates(question), name,
                        assistant, probability, earlier, where, configured, tuple(basis))
        return await self._keep(turn)

    async def start_call(self, owner: str, configuration: str, prompt: str, call: Generate) -> ChatTurn:
        """Create and keep a turn that only calls a configuration's model. Its record is kept apart from those of
        answers."""
        turn = ChatTurn(uuid4().hex, uuid4().hex, 0, owner, replace_surrogates(prompt), TASKS + configuration,
                        self.configurations[configuration].assistant, history=(), call=call)
        return await self._keep(turn)

    async def _keep(self, turn: ChatTurn) -> ChatTurn:
        """Store a turn when it starts. Raises OverSpent if its owner has spent their limit."""
        await self.traffic.start(turn, self.spending.allowance(turn.owner))
        return turn

    def may_see(self, basis: Sequence[str] | None, owner: str) -> bool:
        """Tell whether an owner may still read everything that an answer is based on; None means unknown, which is no.
        """
        return self.access.may_see(basis, (one.assistant.index for one in self.configurations.values()), owner)

    async def thread(self, thread: str, owner: str) -> dict[str, Any] | None:
        """Return a thread as `Traffic.thread` does, with `WITHHELD` instead of answers based on documents that the
        owner may no longer read."""
        shown = await self.traffic.thread(thread, owner)
        for turn in shown["turns"] if shown else ():
            answer = turn["answer"]
            if answer and not await asyncio.to_thread(self.may_see, answer.get("basis"), owner):
                index = next(iter(self.configurations.values())).assistant.index
                fields = {name: answer[name] for name in ("record", "thread", "configuration", "question")
                          if name in answer}
                turn["answer"] = answer_json(failed_answer(_WITHHELD), f"{_WITHHELD.message}.", index,
                                             **fields)
            elif answer:
                answer.pop("basis", None)
        return shown

    async def _basis(self, thread: str, owner: str) -> list[str]:
        """Return what the answers of a thread are based on. Raises SettingsError if the owner may not read all of it.
        """
        answers = [turn["answer"] or {} for turn in (await self.traffic.thread(thread, owner) or {})["turns"]]
        basis = [one.get("basis") for one in answers]
        if not all([await asyncio.to_thread(self.may_see, one, owner) for one in basis]):
            why = ("is based on documents that your key may no longer read" if all(answers) else
                   "has an answer that did not end, so what it is based on is unknown")
            raise SettingsError(f"this conversation {why}; start a new one")
        return sorted({document for one in basis for document in one or ()})

    def play(self, turn: ChatTurn) -> AsyncGenerator[Event]:
        """Answer a turn in a separate task, and yield its events: steps, pieces of the answer as `text`, and finally
        `answer`. If the client stops reading, the question is stopped, and its record says so."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self._run(turn, events.put_nowait))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return _events_of(task, events)

    async def answer(self, turn: ChatTurn) -> Event:
        """Answer a turn, and return the event `answer`."""
        async with contextlib.aclosing(self.play(turn)) as events:
            *_, last = [event async for event in events]
        return last


    async def _run(self, turn: ChatTurn, on_event: Callable[[Event | None], None]) -> None:
        text, times, answer = AnswerStream(), TurnTimes(), failed_answer(_INTERNAL)

        def emit(event: Event) -> None:
            times.add(event)
            on_event(event)

        try:
            emit({"event": "begun", "thread": turn.thread, "record": turn.record, "configuration": turn.configuration})
            turn, answer = await self._answer_alone(turn, text, times, emit)
        except asyncio.CancelledError:  # the task goes on, to write its record
            answer = failed_answer(_STOPPED)
        finally:  # an unexpected error gets a record too, before the client can see the end
            try:
                rest = "" if answer.failure is _STOPPED else text.rest(display_text(hide_answer(answer)))
                if rest:
                    times.add({"event": "text"})
                shown = await self._record(turn, answer, text, times)
                if rest and answer.failure is None:  # the reason for a failure is not part of the answer
                    on_event({"event": "text", "text": rest})
                on_event({"event": "answer", **shown})
            finally:
                on_event(None)

    async def _answer_alone(self, turn: ChatTurn, text: AnswerStream, times: TurnTimes,
                            emit: Callable[[Event], None]) -> tuple[ChatTurn, Answer]:
        """Answer a turn while no other turn of its thread is answered. Also return the turn, with the assistant that
        answered."""
        id = turn.thread if turn.history is None else turn.record
        if id in self._threads:
            return turn, failed_answer(Failure("settings", "a question is being answered; wait for its answer"))
        self._threads.add(id)
        try:
            return await self.alternatives.answer(turn, emit, partial(self._answer, text=text), times.restart,
                                                  lambda: bool(text.sent))
        except database_errors() as error:
            _LOG.warning("the threads cannot be read or written: %s", sanitize_line(str(error)))
            return turn, failed_answer(_UNSTORED)
        finally:
            self._threads.discard(id)  # a client that sees the record can ask the next question

    async def _answer(self, turn: ChatTurn, emit: Callable[[Event], None], text: AnswerStream) -> Answer:
        """Play a turn to its end. If it is cancelled, return an answer marked as stopped, with the steps so far."""
        session: Session | None = None
        called = count()
        assistant, id = turn.assistant, turn.thread if turn.history is None else turn.record

        def on_event(event: Event) -> None:
            nonlocal session
            session = session or assistant.live_session(id)
            for one in _served_events(event, text, assistant, session, called):
                emit(one)

        try:
            if turn.call is not None:
                return await answer_call(assistant, turn.call)
            if turn.history is None:
                await assistant.abandon(id)  # a killed server left this question unfinished
            state = assistant.begin(turn.question, thread=id, turns=turn.history)
            return await assistant.play(state, on_event)
        except (UserError, CallError) as error:
            own = "settings" if isinstance(error, SettingsError | RecipeMismatch) else "server"
            return failed_answer(Failure(getattr(error, "kind", own), redact_keys(str(error))))
        except database_errors() as error:
            _LOG.warning("the threads cannot be read or written: %s", sanitize_line(str(error)))
            return failed_answer(_UNSTORED)
        except asyncio.CancelledError:  # the task goes on, to write its record
            if turn.history is None:
                await assistant.abandon(id)
            if session is None:
                return failed_answer(_STOPPED)
            return replace(session.answer(), outcome="error", refused=False, failure=_STOPPED)

    async def _record(self, turn: ChatTurn, answer: Answer, text: AnswerStream, times: TurnTimes) -> Event:
        """Store the answer, and return it as JSON. If it cannot be stored, it has failed. The record has the details of
        failures; clients do not get them."""
        def show(answer: Answer) -> Event:
            return answer_json(hide_answer(answer), text.sent, turn.assistant.index, record=turn.record,
                               thread=turn.thread, configuration=turn.configuration, question=turn.question,
                               model=short_name(turn.assistant.settings.model))

        shown = show(answer)
        basis = {"basis": self.access.basis(answer, turn.assistant.index, turn.basis)} if self.access.rules else {}
        try:
            await self.traffic.end(turn, answer, {**shown, **basis}, self.spending.price(turn.owner, answer))
        except RunError as error:
            _LOG.warning("an answer cannot be stored: %s", error)
            answer = failed_answer(_UNSTORED)
            shown = {**show(answer), "text": display_text(answer)}
        for observer in self._observers:
            observer(turn, answer, times)
        return shown


async def _events_of(task: asyncio.Task[None], events: asyncio.Queue[Event | None]) -> AsyncGenerator[Event]:
    try:
        while True:
            waiting = [await events.get()]
            while not events.empty():
                waiting.append(events.get_nowait())
            for event in join_pieces(waiting):
                if event is None:
                    await task  # raises the task's error, because there was no answer
                    return
                yield event
                if event["event"] == "answer":
                    return
    finally:
        if not task.done():
            _cancel_once(task)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})  # if this is cancelled again, the task still writes its record


def _cancel_once(task: asyncio.Task[None]) -> None:
    """Cancel a question unless it is cancelled already, because a second cancellation would prevent its record."""
    if not task.cancelling():
        task.cancel()


def _served_events(event: Event, text: AnswerStream, assistant: Assistant, session: Session | None,
                   called: Iterator[int]) -> list[Event]:
    """Return the event as JSON, and the new text of the answer. The end of a search or a tool's call comes with the
    passages found, and that of a tool's call with its text. `called` counts them."""
    if event["event"] == "calling":
        event = {**event, **call_json(event["tool"], event["arguments"])}
    elif event["event"] == "tool" and session is not None:
        steps = (step for step in session.trace if isinstance(step, ToolStep))
        event = {**event, **step_json(next(islice(steps, next(called), None)))}
    if event["event"] in ("search", "tool") and session is not None:
        event = {**event, "passages": [passage_json(passage.number, passage.chunk, assistant.index)
                                       for passage in session.passages if passage.number in event["found"]]}
    event = hide_event(event)
    reasoning, new = text.feed(event)
    pieces = {"reasoning": reasoning, "text": new}
    return [event, *({"event": kind, "text": piece} for kind, piece in pieces.items() if piece)]
