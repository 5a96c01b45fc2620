"""One question of a thread."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbed.strategies.types import Generate, Turn

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One question of a thread.

    Attributes:
        record: id of its record.
        position: number of turns before it in the thread.
        owner: name of the key that the client used; empty if the server needs no key.
        assistant: answers the question, even if the configuration gets a new assistant meanwhile.
        probability: probability of the thread's assignment to this configuration.
        history: earlier turns, sent by a client that keeps the conversation; None if the server stores the thread.
        configured: the assistant of the configuration, if `assistant` is a copy that applies the filter `where`, or
            that reaches only some documents.
        call: what to ask the model, if the turn is a prompt of a client program, such as for a title.
        basis: what the history is based on, if the server has rules (`Access.basis`).
    """

    record: str
    thread: str
    position: int
    owner: str
    question: str
    configuration: str
    assistant: Assistant
    probability: float = 1.0
    history: tuple[Turn, ...] | None = None
    where: tuple[str, ...] = ()
    configured: Assistant | None = None
    basis: tuple[str, ...] = ()
    call: Generate | None = None

    @property
    def run(self) -> Assistant:
        """Return the assistant whose run stores the answer. Requests with filters have no separate run."""
        return self.configured or self.assistant
