"""Keep reviews in one SQLite file. Each review is durable before it is acknowledged, and never overwrites another."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from ragbed.agents.database import Database
from ragbed.documents.errors import RunError
from ragbed.documents.types import digest
from ragbed.experiments.guests.review.items import Item

NOT_USEFUL = "not useful"
REASONS: Mapping[str, str] = {
    "wrong answer": "The answer is wrong or incomplete.",
    "evidence missing": "The evidence does not support the answer, or is elsewhere.",
    "several right answers": "Another answer is correct too.",
    "question unclear": "It is vague, or cannot be understood without the document.",
    "wrong answerability": "It is marked answerable but is not, or the reverse.",
    NOT_USEFUL: "It is correct, but trivial or a duplicate. Its label is not wrong."}
"""Reasons for a rejection, with their meaning. A reviewer may type another one."""
_TABLE = ("CREATE TABLE IF NOT EXISTS reviews (n INTEGER PRIMARY KEY AUTOINCREMENT, reviewer TEXT NOT NULL,"
          " item TEXT NOT NULL, content TEXT NOT NULL, review TEXT NOT NULL)")
_VERSION = 1
# Insert only if the reviewer saw the latest review: two windows with one name do not overwrite each other.
_PUT = ("INSERT INTO reviews (reviewer, item, content, review) SELECT ?, ?, ?, ? WHERE ? ="
        " (SELECT coalesce(max(n), 0) FROM reviews WHERE reviewer = ? AND item = ?)")
_LAST = "SELECT reviewer, item, content, review, max(n) FROM reviews GROUP BY reviewer, item ORDER BY reviewer, n"

_Text = Annotated[str, StringConstraints(max_length=20_000)]
Reviewer = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]


class Review(BaseModel):
    """One reviewer's verdict on one item.

    Attributes:
        decision: empty if there is only a note.
        reason: for a rejection, one of `REASONS` or the reviewer's own words.
        question, answers: the edited texts, if the item is accepted with edits.
        evidence: numbers of the candidate passages that the reviewer chose as evidence, from 1.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    decision: Literal["accept", "reject", ""] = ""
    reason: _Text = ""
    note: _Text = ""
    question: _Text = ""
    answers: tuple[_Text, ...] = Field(default=(), max_length=100)
    evidence: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(), max_length=100)

    @model_validator(mode="after")
    def _check(self) -> Review:
        if (self.decision == "reject") != bool(self.reason.strip()):
            raise ValueError("a rejection needs a reason, and other decisions must not have one")
        if (self.edited or self.evidence) and self.decision != "accept":
            raise ValueError("only an accepted item may be edited, or have evidence chosen")
        return self

    @property
    def edited(self) -> bool:
        """Whether the item is accepted with edits."""
        return bool(self.question or self.answers)

    @property
    def faulty(self) -> bool:
        """Whether the original item is wrong: accepted only with edits, or rejected except as not useful."""
        return self.edited or (self.decision == "reject" and self.reason != NOT_USEFUL)


def content_hash(item: Item) -> str:
    """Return a hash of the reviewed content. If an item changes later, its reviews no longer count.

    It is the same whether or not the index with the evidence is open: a question of a file names its gold in `made`.
    """
    return digest(item.question, *item.answers, "", *item.options, "", str(item.answerable),
                  *item.made.get("gold", [one.text for one in item.evidence]),
                  *(json.dumps(one, sort_keys=True) for one in item.made.get("candidates", ())))


class ReviewFile:
    """The reviews of a set. Raises RunError if the file cannot be opened or read. With `reading`, it must exist."""

    def __init__(self, path: Path, items: Mapping[str, Item], reading: bool = False) -> None:
        if reading and not path.is_file():
            raise RunError(f"{path}: nothing has been reviewed yet; leave out --summary and --export to start")
        self._items = {id: content_hash(item) for id, item in items.items()}
        self._database = Database(path, (_TABLE,), _VERSION, reading)

    def latest(self) -> dict[str, dict[str, tuple[int, Review]]]:
        """Return each reviewer's latest review of each item, with its number."""
        found: dict[str, dict[str, tuple[int, Review]]] = {}
        for reviewer, item, content, review, number in self._database.read(_LAST):
            if self._items.get(item) == content:
                found.setdefault(reviewer, {})[item] = number, self._read(review)
        return found

    def count_stale(self) -> int:
        """Count the reviews of items that have changed or no longer exist."""
        return sum(self._items.get(item) != content for _, item, content, _, _ in self._database.read(_LAST))

    def last_number(self, reviewer: str, item: str) -> int:
        """Return the number of a reviewer's latest review of an item, or 0."""
        (number,), = self._database.read("SELECT coalesce(max(n), 0) FROM reviews WHERE reviewer = ? AND item = ?",
                                         (reviewer, item))
        return int(number)

    def put(self, reviewer: str, item: str, seen: int, review: Review) -> bool:
        """Store a review durably. Return False if the reviewer's latest review of the item is no longer number `seen`.
        """
        self._database.put(_PUT, (reviewer, item, self._items[item], review.model_dump_json(), seen, reviewer, item))
        kept = self._database.read("SELECT changes()") == [(1,)]
        self._database.flush()
        return kept

    def undo(self, reviewer: str) -> str | None:
        """Delete the reviewer's latest review, and return its item; None if there is none."""
        rows = self._database.read("SELECT n, item FROM reviews WHERE reviewer = ? ORDER BY n DESC LIMIT 1",
                                   (reviewer,))
        for number, item in rows:
            self._database.put("DELETE FROM reviews WHERE n = ?", (number,))
            self._database.flush()
            return str(item)
        return None

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _read(self, stored: str) -> Review:
        try:
            return Review.model_validate_json(stored)
        except ValidationError as error:
            raise RunError(f"{self._database.path}: damaged: a review in it cannot be read") from error
