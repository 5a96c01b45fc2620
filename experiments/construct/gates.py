"""The gates that items pass, in this order: each says why an item is lost, or lets it pass.

What decides is pure: texts, spans and solvers' answers in, a reason or None out. Solvers are asked by recipes that the
machine plays.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from documents.types import Chunk
from experiments.construct.asking import LABELS, SOLVER, solved, together
from experiments.construct.item import Item, Library
from experiments.metrics.matching import exact_match, holds
from experiments.negatives.guard import likeness, shingles
from strategies.choice import read_choice
from strategies.normalising import normalize_answer
from strategies.reading import strip_citations
from strategies.types import Draft

_POINTING = re.compile(r"\b(?:(?:the|this|that|these|those|given|provided|above|following)\s+(?:provided\s+|given\s+)?"
                       r"(?:documents?|passages?|texts?|contexts?|tables?|excerpts?|articles?|paragraphs?|sections?|"
                       r"chunks?)|(?:mentioned|described|shown|listed)\s+(?:above|below)|as\s+(?:above|below))\b"
                       r"|(?:이|위|해당|주어진|다음)\s*(?:문서|글|표|본문|지문)", re.IGNORECASE)
_SAME = 0.7  # of the words' runs of two questions (Jaccard): from here on one is the other's twin
_SHORT = 8  # times the answer's length: a reply that is longer names too much to be right for what it names
_NEAR = 0.95  # cosine of two questions


def spans(item: Item, library: Library) -> str | None:
    """Check that the evidence stands word for word where it is said to stand."""
    if not item.evidence:
        return "it has no evidence"
    for one in item.evidence:
        document = library.document(item, one.document)
        if document is None:
            return "its document is unknown"
        if not one.text or document.text(one.format)[one.start:one.end] != one.text:
            return "the evidence does not stand in its document"
    return None


def self_contained(item: Item, library: Library) -> str | None:
    """Check that the question names no text that its reader does not have before him."""
    found = _POINTING.search(item.question)
    return f"it points to {found[0].lower()!r}" if found else None


def solvable(item: Item, library: Library) -> Generator[Any, Any, Item | str]:
    """Have every solver answer from the evidence alone; most of them must be right."""
    drafts = yield from _by_solvers(item, library, evidence_chunks(item, library))
    rate = sum(right(item, draft) for draft in drafts) / len(drafts)
    if rate * 2 <= 1:
        return "solvers with its evidence do not reach its answer"
    return replace(item, measured={**item.measured, "solved": rate})


def unknown(item: Item, library: Library) -> Generator[Any, Any, Item | str]:
    """Have every solver answer closed-book; most of them must not know it."""
    drafts = yield from _by_solvers(item, library, ())
    rate = sum(right(item, draft) for draft in drafts) / len(drafts)
    if rate * 2 > 1:
        return "solvers know it without any document"
    return replace(item, measured={**item.measured, "known": rate})


def _by_solvers(item: Item, library: Library, chunks: Sequence[Chunk]) -> Generator[Any, Any, list[Draft]]:
    return together([solved(f"{SOLVER} {number}", item, chunks) for number in range(1, library.solvers + 1)])


def right(item: Item, draft: Draft) -> bool:
    """Say whether an answer is right: the option's label, or any accepted answer in a short reply."""
    if draft.refused or not draft.well_formed:
        return False
    text = strip_citations(draft.text)
    if item.options:
        labels = tuple(zip(LABELS, item.options, strict=False))
        chosen = read_choice(text, labels)
        return chosen is not None and dict(labels)[chosen] in item.answers
    said = normalize_answer(text)
    short = len(said) <= _SHORT * max(len(normalize_answer(answer)) for answer in item.answers) + _SHORT
    return bool(exact_match(text, item.answers)) or (short and any(
        holds(said, normalize_answer(answer)) for answer in item.answers))


def evidence_chunks(item: Item, library: Library) -> list[Chunk]:
    """Return the evidence as chunks, each by itself."""
    return [Chunk.of(document, one.format, one.start, one.end) for one in item.evidence
            if (document := library.document(item, one.document)) is not None]


def twin(library: Library) -> Callable[[Item, Sequence[Item]], str | None]:
    """Return what says whether an item is too like one of those kept before it, by its words and by embedding."""
    vectors: dict[str, Any] = {}

    def check(item: Item, kept: Sequence[Item]) -> str | None:
        if not kept:
            return None
        alike = [other for other in kept if max(likeness(shingles(item.question), shingles(other.question))) >= _SAME]
        if alike and set(alike[0].answers) & set(item.answers):
            return "it asks what another item asks"
        new = [one for one in (item, *kept) if one.id not in vectors]
        vectors.update(zip((one.id for one in new), library.embedder().embed_queries([one.question for one in new]),
                           strict=True))
        near = [other for other in kept if float(vectors[item.id] @ vectors[other.id]) >= _NEAR]
        return "it asks what another item asks" if any(set(one.answers) & set(item.answers) for one in near) else None

    return check
