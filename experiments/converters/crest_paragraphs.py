"""Questions over paragraphs, on their way from a dataset to CReSt-shaped records."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph or page.

    Attributes:
        source: its name in the whole dataset.
        gold: whether it is needed for the answer to the question that has it.
    """

    title: str
    text: str
    source: str
    gold: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One question.

    Attributes:
        kind: CReSt's optional `question_type`; empty where nothing is known.
        field: the subject whose paragraphs may be given to one another's questions.
        paragraphs: what is shown, in order.
        more: paragraphs that may be given to it, and to others.
    """

    id: str
    query: str
    answer: str
    language: str
    difficulty: str
    reasoning: str
    kind: str
    field: str
    paragraphs: tuple[Paragraph, ...]
    more: tuple[Paragraph, ...] = ()
