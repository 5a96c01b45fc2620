"""Playing one turn of a thread: its events as they come, its answer, and its record, whoever waits for it."""
from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ragbed.agents.types import Answer, failed_answer
from ragbed.documents.errors import CallError, SettingsError, UserError
from ragbed.documents.http import redact_keys
from ragbed.documents.types import replace_surrogates
from ragbed.experiments.guests.serving.served import answer_json, display_text, passage_json
from ragbed.experiments.guests.serving.streaming import AnswerText
from ragbed.strategies.types import Failure, Generate, Message, Reply, Turn

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.agents.session import Session
    from ragbed.experiments.guests.serving.configurations import Configuration
    from ragbed.experiments.guests.serving.traffic import Traffic

Event = dict[str, Any]
_ASIDE = 256  # tokens of a title
_GONE = Failure("stopped", "whoever asked went away, or the server was stopped")
_BROKEN = Failure("internal", "the server failed; its log says how")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a thread.

    Attributes:
        record: the id of its record.
        place: how many turns the thread had before.
        owner: the name of the key that asked; empty where no key is needed.
        assistant: who answers, also where the configuration has another one meanwhile.
        probability: with which its thread was given this configuration.
        turns: the turns before, as a client without a thread of its own sent them; None where the thread is kept here.
    """

    record: str
    thread: str
    place: int
    owner: str
    question: str
    configuration: str
    assistant: Assistant
    probability: float = 1.0
    turns: tuple[Turn, ...] | None = None


@dataclass(slots=True)
class Times:
    """When a turn and its steps began and ended, in seconds of the epoch.

    Attributes:
        first: when the first text of the answer was told.
        searches, calls: each with its beginning and, where it ended, its end; calls by their number.
    """

    begun: float = field(default_factory=time.time)
    first: float | None = None
    searches: list[list[float]] = field(default_factory=list)
    calls: dict[int, list[float]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Note the time of an event."""
        match event["event"]:
            case "text" if self.first is None:
                self.first = time.time()
            case "searching":
                self.searches.append([time.time()])
            case "search":
                next((one for one in self.searches if len(one) == 1), []).append(time.time())
            case "asking":
                self.calls[event["call"]] = [time.time()]
            case "reply":
                self.calls[event["call"]].append(time.time())


Observer = Callable[[Asked, Answer, Times], None]  # is told of every answer, also of one that nobody waited for


class Turns:
    """Plays turns with the configurations that are served, and has their records kept."""

    def __init__(self, configurations: dict[str, Configuration], traffic: Traffic,
                 observers: Sequence[Observer] = ()) -> None:
        self.configurations, self.traffic, self._observers = configurations, traffic, observers
        self._threads: set[str] = set()
        self._playing: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Return when the record of every question is kept that nobody waits for any more."""
        for playing in self._playing:
            _stop(playing)
        if self._playing:
            await asyncio.wait(self._playing)

    async def begin(self, owner: str, question: str, wanted: str | None = None, thread: str | None = None,
                    turns: Sequence[Turn] | None = None) -> Asked:
        """Return the next question of a thread, or the first of a new one, which is kept from now on. Raises
        SettingsError where there is no such configuration or thread, the question is empty, or the thread is being
        answered."""
        if wanted is not None and wanted not in self.configurations:
            raise SettingsError(f"no configuration {wanted!r:.100}; there are {', '.join(self.configurations)}")
        if not question.strip():
            raise SettingsError("the question is empty")
        place = len(turns or ()) if thread is None or turns is not None else await self.traffic.place(thread, owner)
        thread = thread or uuid4().hex
        name, probability = await self.traffic.choose(thread, wanted)
        record = f"{thread}-{place}" if turns is None else uuid4().hex
        before = None if turns is None else tuple(
            Turn(replace_surrogates(one.question), replace_surrogates(one.answer)) for one in turns)
        one = self.configurations[name]
        asked = Asked(record, thread, place, owner, replace_surrogates(question), name,
                      one.threads if turns is None else one.assistant, probability, before)
        await self.traffic.begun(asked)
        return asked

    def play(self, asked: Asked) -> AsyncGenerator[Event]:
        """Begin to answer a question, which then has a record even if nobody looks at an event; return its events as
        they happen, pieces of its answer as `text`, and last `answer`. Where nobody waits any more, the question ends,
        and its record says so."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        playing = asyncio.create_task(self._played(asked, events.put_nowait))
        self._playing.add(playing)
        playing.add_done_callback(self._playing.discard)
        return _watched(playing, events)

    async def answer(self, asked: Asked) -> Event:
        """Return the event `answer` alone."""
        async with contextlib.aclosing(self.play(asked)) as events:
            *_, last = [event async for event in events]
        return last

    async def aside(self, configuration: str, text: str) -> Reply | Failure:
        """Ask the model of a configuration for something that is no question of its documents."""
        assistant = self.configurations[configuration].assistant
        call = Generate((Message("user", (text,)),), "aside", max_tokens=_ASIDE)
        return (await assistant.model.ask(call, time.monotonic() + assistant.client.limits.seconds)).outcome

    async def _played(self, asked: Asked, tell: Callable[[Event | None], None]) -> None:
        text, times, answer = AnswerText(), Times(), failed_answer(_BROKEN)

        def told(event: Event) -> None:
            times.take(event)
            tell(event)

        try:
            told({"event": "begun", "thread": asked.thread, "record": asked.record,
                  "configuration": asked.configuration})
            answer = await self._ended(asked, text, told)
        finally:  # an error that nobody foresaw is a record too, before anybody can have seen the end
            try:
                rest = "" if answer.failure is _GONE else text.rest(display_text(answer))
                if rest:
                    times.take({"event": "text"})
                shown = await self._kept(asked, answer, text, times)
                if rest and answer.failure is None:  # why it failed is no text of an answer
                    tell({"event": "text", "text": rest})
                tell({"event": "answer", **shown})
            finally:
                tell(None)

    async def _ended(self, asked: Asked, text: AnswerText, tell: Callable[[Event], None]) -> Answer:
        """Play it to its end; one that is cancelled ends as stopped, with what it had by then."""
        play: Session | None = None
        assistant, id = asked.assistant, asked.thread if asked.turns is None else asked.record
        if id in self._threads:
            return failed_answer(Failure("settings", "the thread is being answered; ask again once it is"))
        self._threads.add(id)
        try:
            if asked.turns is None:
                await assistant.abandon(id)  # what a server that was killed left
            state = assistant.begin(asked.question, thread=id, turns=asked.turns)
            async with contextlib.aclosing(assistant.play(state, watched=True)) as events:
                async for event in events:
                    if isinstance(event, Answer):
                        return event
                    play = play or assistant.live_session(id)
                    for one in _told(event, text, assistant, play):
                        tell(one)
        except (UserError, CallError) as error:
            return failed_answer(Failure(getattr(error, "kind", "settings"), redact_keys(str(error))))
        except asyncio.CancelledError:  # of a task of our own, which has a record to write
            if asked.turns is None:
                await assistant.abandon(id)
            if play is None:
                return failed_answer(_GONE)
            return replace(play.answer(), outcome="error", refused=False, failure=_GONE)
        finally:
            self._threads.discard(id)  # whoever sees the record can ask the next question
        return failed_answer(_GONE)

    async def _kept(self, asked: Asked, answer: Answer, text: AnswerText, times: Times) -> Event:
        """Have it recorded; returns the answer as it is shown."""
        shown = answer_json(answer, text.told, asked.assistant.index, record=asked.record, thread=asked.thread,
                            configuration=asked.configuration, question=asked.question)
        for observer in self._observers:
            observer(asked, answer, times)
        await self.traffic.ended(asked, answer, shown)
        return shown


async def _watched(playing: asyncio.Task[None], events: asyncio.Queue[Event | None]) -> AsyncGenerator[Event]:
    try:
        while (event := await events.get()) is not None:
            yield event
            if event["event"] == "answer":
                return
        await playing  # which has no answer, so it raises
    finally:
        if not playing.done():
            _stop(playing)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({playing})  # which, cancelled once more, leaves it to be recorded


def _stop(playing: asyncio.Task[None]) -> None:
    """Cancel a question once: a second time would keep its record from being written."""
    if not playing.cancelling():
        playing.cancel()


def _told(event: Event, text: AnswerText, assistant: Assistant, play: Session | None) -> list[Event]:
    """The event as it is served: a search with its passages; and what is new of the answer's text."""
    if event["event"] == "search" and play is not None:
        event = {**event, "passages": [passage_json(passage.number, passage.chunk, assistant.index)
                                       for passage in play.passages if passage.number in event["found"]]}
    thought, new = text.feed(event)
    more = {"reasoning": thought, "text": new}
    return [event, *({"event": kind, "text": piece} for kind, piece in more.items() if piece)]
