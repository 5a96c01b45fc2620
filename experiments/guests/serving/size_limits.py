"""Limits on the length of what clients send. They are checked before any work begins."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragbed.documents.errors import UserError
from ragbed.strategies.types import Turn


class TooLong(UserError):
    """A client sent more characters or turns than the server accepts."""

    def __init__(self, what: str, length: int, most: int, unit: str = "characters") -> None:
        super().__init__(f"{what} has {length:,} {unit}; at most {most:,} are allowed")


@dataclass(frozen=True)
class SizeLimits:
    """Maximum lengths. Embedding takes time in proportion to a question's length, and questions wait for each other.

    Attributes:
        question: characters of a question, and of an MCP client's search.
        history: characters of all earlier messages of a conversation that the client keeps.
        turns: turns of a conversation.
        task: characters of a prompt of a client program, such as for a title; 0 refuses them all.
    """

    question: int = 4_000
    history: int = 200_000
    turns: int = 500
    task: int = 32_000

    def check_question(self, question: str, what: str = "the question") -> None:
        """Raise TooLong if a question, or another text that is searched for, is too long."""
        if len(question) > self.question:
            raise TooLong(what, len(question), self.question)

    def check_task(self, prompt: str) -> None:
        """Raise TooLong if a prompt of a client program is too long."""
        if len(prompt) > self.task:
            raise TooLong("the prompt", len(prompt), self.task)

    def check_history(self, history: Sequence[Turn]) -> None:
        """Raise TooLong if the turns before a question are too many, or too long together."""
        self.check_position(len(history))
        if (length := sum(len(one.question) + len(one.answer) for one in history)) > self.history:
            raise TooLong("the conversation", length, self.history)

    def check_position(self, position: int) -> None:
        """Raise TooLong if a question has too many turns before it."""
        if position > self.turns:
            raise TooLong("the conversation", position, self.turns, "turns")
