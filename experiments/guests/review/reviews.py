"""What reviewers decided, in one SQLite file: each row is durable when it is answered, and none replaces another's."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from ragbed.agents.database import Database
from ragbed.documents.errors import RunError
from ragbed.documents.types import digest
from ragbed.experiments.guests.review.items import Item

NOT_USEFUL = "of no use"
REASONS: Mapping[str, str] = {
    "wrong answer": "The answer is wrong, or not the whole of it.",
    "evidence lacking": "The evidence does not give the answer, or stands elsewhere.",
    "several right answers": "Another answer is right too.",
    "question unclear": "It cannot be understood without the document, or asks for nothing definite.",
    "answerability wrong": "It is called answerable and is not, or the other way round.",
    NOT_USEFUL: "It is right, and trivial or a twin of another: no error of its label."}
"""Reasons for a rejection with what they mean; a reviewer may type another one."""
_TABLE = ("CREATE TABLE IF NOT EXISTS reviews (n INTEGER PRIMARY KEY AUTOINCREMENT, reviewer TEXT NOT NULL,"
          " item TEXT NOT NULL, content TEXT NOT NULL, review TEXT NOT NULL)")
_VERSION = 1
# Put only while what the reviewer saw is still the last: two windows of one name do not write over each other.
_PUT = ("INSERT INTO reviews (reviewer, item, content, review) SELECT ?, ?, ?, ? WHERE ? ="
        " (SELECT coalesce(max(n), 0) FROM reviews WHERE reviewer = ? AND item = ?)")
_LAST = "SELECT reviewer, item, content, review, max(n) FROM reviews GROUP BY reviewer, item ORDER BY reviewer, n"

_Text = Annotated[str, StringConstraints(max_length=20_000)]
Reviewer = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]


class Review(BaseModel):
    """What one reviewer says of one item."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decision: Literal["accept", "reject", ""] = ""  # empty where there is a note alone
    reason: _Text = ""  # of a rejection, one of `REASONS` or another
    note: _Text = ""
    question: _Text = ""  # as edited, of an item that is accepted so, like the answers; empty where it is as it was
    answers: tuple[_Text, ...] = Field(default=(), max_length=100)

    @model_validator(mode="after")
    def _whole(self) -> Review:
        if (self.decision == "reject") != bool(self.reason.strip()):
            raise ValueError("a rejection, and nothing else, has a reason")
        if self.edited and self.decision != "accept":
            raise ValueError("an edited item is one that is accepted so")
        return self

    @property
    def edited(self) -> bool:
        """Tell whether the item is accepted in other words than its own."""
        return bool(self.question or self.answers)

    @property
    def faulty(self) -> bool:
        """Tell whether the item as it was built is in error: right only as edited, or rejected, but not as useless."""
        return self.edited or (self.decision == "reject" and self.reason != NOT_USEFUL)


def content_hash(item: Item) -> str:
    """Return a hash of what a review is of: one of an item that was built anew with other words does not count."""
    return digest(item.question, *item.answers, "", *item.options, "", str(item.answerable),
                  *(one.text for one in item.evidence))


class ReviewFile:
    """The reviews of a set. Raises RunError where the file cannot be opened, or read: with `reading` it has to be
    there."""

    def __init__(self, path: Path, items: Mapping[str, Item], reading: bool = False) -> None:
        if reading and not path.is_file():
            raise RunError(f"{path}: nothing is reviewed yet; leave out --summary and --export to begin")
        self._items = {id: content_hash(item) for id, item in items.items()}
        self._database = Database(path, (_TABLE,), _VERSION, reading)

    def latest(self) -> dict[str, dict[str, tuple[int, Review]]]:
        """Return the last review of each item by each reviewer, and its number."""
        found: dict[str, dict[str, tuple[int, Review]]] = {}
        for reviewer, item, content, review, number in self._database.read(_LAST):
            if self._items.get(item) == content:
                found.setdefault(reviewer, {})[item] = number, self._read(review)
        return found

    def count_stale(self) -> int:
        """Count the reviews of items that the set has no longer, or has in other words."""
        return sum(self._items.get(item) != content for _, item, content, _, _ in self._database.read(_LAST))

    def last_number(self, reviewer: str, item: str) -> int:
        """Return the number of the last review of an item by a reviewer; 0 where there is none."""
        (number,), = self._database.read("SELECT coalesce(max(n), 0) FROM reviews WHERE reviewer = ? AND item = ?",
                                         (reviewer, item))
        return int(number)

    def put(self, reviewer: str, item: str, seen: int, review: Review) -> bool:
        """Keep a review, durably; False where another one was kept since the reviewer saw number `seen`."""
        self._database.put(_PUT, (reviewer, item, self._items[item], review.model_dump_json(), seen, reviewer, item))
        kept = self._database.read("SELECT changes()") == [(1,)]
        self._database.flush()
        return kept

    def undo(self, reviewer: str) -> str | None:
        """Forget the reviewer's last review, and return the item that it was of; None where none is left."""
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
            raise RunError(f"{self._database.path}: damaged, a review of it cannot be read") from error
