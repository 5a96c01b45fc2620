"""Filters that items must pass. A filter returns why it rejects an item, or None. With solvers, it is a recipe."""
from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.answer_support.word_overlap import content_words
from ragbed.experiments.guests.construct.answer_matching import is_correct
from ragbed.experiments.guests.construct.llm import SOLVER, in_parallel, solve
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.hard_negatives.guard import REASONS, Rejected, shingles, similarity, visible_text
from ragbed.experiments.guests.hard_negatives.names import extract_numbers
from ragbed.experiments.guests.review.items import Evidence, Item, overlaps
from ragbed.experiments.question import Question
from ragbed.experiments.running.gold import revealing_answers
from ragbed.strategies.normalizing import normalize_answer
from ragbed.strategies.types import Draft

_THING = (r"(?:documents?|passages?|texts?|contexts?|tables?|excerpts?|snippets?|articles?|paragraphs?|sections?"
          r"|chunks?|reports?)")
_DATA = r"(?:information|data|details|facts)"
_KOREAN = r"(?:문서|글|표|본문|지문|텍스트|자료|보고서|기사|문단|단락|구절|그림|도표|내용)"
_ENDS = r"(?=(?:들?(?:에서[는도]?|에는?|의|을|를|은|는|이|가|로|으로|과|와|상))?(?![가-힣]))"
_NAMED = r"(?!\s+(?:of|from|by|titled|published|that|which|where|between|on)\b)"
_REFERENCES = tuple(re.compile(pattern, flags) for pattern, flags in (
    # "The table" refers to a text; Table Mountain and the text of a law do not.
    (rf"\b(?i:the|these|those|given|provided|above|preceding)\s+(?:(?:provided|given|source|above|following)\s+)?{_THING}"
     rf"\b{_NAMED}", re.NOFLAG),
    (rf"\b(?:this|following)\s+{_THING}\b", re.IGNORECASE),
    (rf"\b(?:(?:provided|given)\s+{_DATA}|{_DATA}\s+(?:provided|given)(?!\s+(?:\w+\s+)?(?:in|by)))\b", re.IGNORECASE),
    (r"\b(?:mentioned|described|shown|listed|stated|discussed|noted)\s+(?:above|below|earlier)\b", re.IGNORECASE),
    (r"\bthe (?:author|narrator)s?(?!\w| of\b| who\b)", re.IGNORECASE),
    (r"\b(?:Table|Figure|Fig\.|Chart|Exhibit|[Pp]age) \d+(?! of\b| in\b)", re.NOFLAG),
    # A pronoun at the beginning has nothing to refer to.
    (r"^(?:when|where|who|what|why|how|which \w+) (?:is|was|were|did|does|has|had|can|could|will|would)"
     r" (?:he|she|his|her|its)\b", re.IGNORECASE),
    (rf"(?<![가-힣])(?:이|위|해당|주어진|다음|본|상기|제시된|아래)(?:의|에\s*나온)?\s*{_KOREAN}{_ENDS}", re.NOFLAG),
    (rf"(?<![가-힣])(?:본문|지문)에(?:서|\s*따르면)|^{_KOREAN}(?:에\s*따르면|에서)", re.NOFLAG),
    (r"(?:위에서|앞서|앞에서|아래에서?)\s*(?:언급|설명|제시|말)|^(?:그는|그녀는|그의|그녀의)\s", re.NOFLAG)))
_UNNAMED = re.compile(r"\bthe (?:company|firm|bank|organi[sz]ation|study|patient|project|experiment)"
                      r"(?!\w| (?:that|who|which|of|in|whose|behind|with)\b)", re.IGNORECASE)
_NAME = re.compile(r"(?<!^)(?<![.?!] )\b[A-Z0-9]\w*[A-Za-z]|(?<=\s)[\"“'‘]\w")
_WHICH = re.compile(r"\b(?:which|what) of the following\b", re.IGNORECASE)
_SAME = 0.7  # least Jaccard index or containment of two questions that repeat each other, if they share an answer
_NEAR = 0.95  # or the least cosine of their vectors
_EQUAL = 0.9  # least Jaccard index of two questions with the same words and numbers that count as the same


def check_spans(item: Item, library: Library) -> str | None:
    """Check that the evidence matches the document word for word at its offsets."""
    if not item.evidence:
        return "it has no evidence"
    for one in item.evidence:
        document = library.document(item, one.document)
        if document is None:
            return "its document is unknown"
        if not one.text or document.text(one.format)[one.start:one.end] != one.text:
            return "its evidence is not in the document"
    return None


def check_self_contained(item: Item, library: Library) -> str | None:
    """Check that the question can be understood alone. It must not refer to a text that its reader does not see, begin
    with a pronoun, or ask about a company or study without naming it. "Which of the following" needs options."""
    text = item.question.strip()
    found = next((match for pattern in _REFERENCES if (match := pattern.search(text))), None)
    if found is None and not _NAME.search(text):
        found = _UNNAMED.search(text)
    if found is None and not item.options:
        found = _WHICH.search(text)
    return f"it refers to {found[0].lower()!r}" if found else None


def check_solvable(item: Item, library: Library) -> Generator[Any, Any, Item | str]:
    """Let every solver answer from the evidence alone. More than half must be correct."""
    rate, = yield from success_rates(item, library, [evidence_chunks(item, library)])
    if rate * 2 <= 1:
        return "most solvers do not find its answer in the evidence"
    return replace(item, measured={**item.measured, "solved": rate})


def check_unknown(item: Item, library: Library) -> Generator[Any, Any, Item | str]:
    """Let every solver answer closed-book. At most half may be correct."""
    rate, = yield from success_rates(item, library, [()])
    if rate * 2 > 1:
        return "most solvers answer it without documents"
    return replace(item, measured={**item.measured, "known": rate})


def check_needs_evidence(item: Item, library: Library, by: Literal["chunk", "span"] = "chunk"
                   ) -> Generator[Any, Any, Item | str | None]:
    """Let every solver answer from the item's chunks without the evidence, and from the evidence with each piece left
    out in turn.

    At most half may be correct each time. A piece is all evidence in one chunk, or, with `by="span"`, one span. If no
    text is left to answer from, the item passes: `check_unknown` covers this case."""
    pieces = _evidence_pieces(item, by)
    shown = [chunk for chunk in item.chunks if not any(holds_evidence(chunk, one) for one in item.evidence)]
    views = [shown] if shown else []
    if len(pieces) > 1:
        views += [evidence_chunks(replace(item, evidence=tuple(one for one in item.evidence if one not in piece)),
                                  library) for piece in pieces]
    if not views:
        return None
    rates = yield from success_rates(item, library, views)
    if shown and rates[0] * 2 > 1:
        return "most solvers answer it with its evidence removed"
    if any(rate * 2 > 1 for rate in rates):
        return "most solvers answer it without one piece of its evidence"
    return replace(item, measured={**item.measured, "without_evidence": max(rates)})


def _evidence_pieces(item: Item, by: Literal["chunk", "span"]) -> list[list[Evidence]]:
    held = [[one for one in item.evidence if overlaps(chunk, one)] for chunk in item.chunks] if by == "chunk" else []
    rest = [one for one in item.evidence if not any(one in piece for piece in held)]
    return [piece for piece in held if piece] + [[one] for one in rest]


def holds_evidence(chunk: Chunk, one: Evidence) -> bool:
    """Return whether the chunk has a part of the evidence, or all of it in the other rendering of the document."""
    if chunk.document != one.document or chunk.format == one.format:
        return overlaps(chunk, one)
    return normalize_answer(visible_text(one.text, one.format)) in normalize_answer(visible_text(chunk.content,
                                                                                                 chunk.format))


def check_unique(item: Item, library: Library) -> str | None:
    """Check that the guard finds no other passage in the index that answers the question. The other rendering of the
    evidence's document does not count."""
    second = next(_other_passages(item, library), None)
    return None if second is None else f"a second passage may answer it: {REASONS[second.reason]}"


def certify_unanswerable(item: Item, library: Library) -> str | None:
    """Check that the guard finds no answer to an unanswerable item, neither in its own chunks nor in the index. The
    removed evidence does not count."""
    if not item.answers:
        return "it has no answer to search for"
    asked = _as_question(item)
    if not revealing_answers(asked):
        return "its answer is too common to search for"
    ids = {chunk.id for chunk in item.chunks}
    if any(one.chunk.id in ids for one in library.guarded_index.find_rejected(asked, also=item.chunks)):
        return "one of its own chunks may answer it"
    second = next(_other_passages(item, library), None)
    return None if second is None else f"a passage of the index may answer it: {REASONS[second.reason]}"


def _other_passages(item: Item, library: Library) -> Iterator[Rejected]:
    """Yield passages of the index and of the item, other than its evidence, that may answer the question. A passage
    similar to the evidence counts too, unless the evidence is in a document made for this item (such as an edited one),
    or the passage is a small part of the evidence (such as a table's header)."""
    formats = {(one.document, one.format) for one in item.evidence}
    documents = {document for document, _ in formats}
    gold = [chunk for chunk in evidence_chunks(item, library) if chunk.document in library.documents]
    sizes = {chunk.id: len(chunk.content) for chunk in gold}
    for one in library.guarded_index.find_rejected(_as_question(item), gold, item.chunks):
        chunk = one.chunk
        rendered_twice = chunk.document in documents and (chunk.document, chunk.format) not in formats
        small = one.reason == "near_duplicate" and len(chunk.content) * 2 < sizes[str(one.figures["gold"])]
        if not (rendered_twice or small or any(overlaps(chunk, each) for each in item.evidence)):
            yield one


def _as_question(item: Item) -> Question:
    return Question(item.id, item.question, item.answers, item.answerable)


def ask_solvers(item: Item, library: Library, views: Sequence[Sequence[Chunk]], strategy: str = "direct"
               ) -> Generator[Any, Any, list[list[Draft]]]:
    """Let every solver answer from each view; return the drafts by view."""
    drafts = yield from in_parallel([solve(f"{SOLVER} {number}", item, view, strategy) for view in views
                                     for number in range(1, library.solvers + 1)])
    return [drafts[at:at + library.solvers] for at in range(0, len(drafts), library.solvers)]


def success_rates(item: Item, library: Library, views: Sequence[Sequence[Chunk]]) -> Generator[Any, Any, list[float]]:
    """Let every solver answer from each view; return the share that is correct by view."""
    groups = yield from ask_solvers(item, library, views)
    return [sum(is_correct(item, draft) for draft in group) / len(group) for group in groups]


def evidence_chunks(item: Item, library: Library) -> list[Chunk]:
    """Return each piece of evidence as a chunk."""
    return [Chunk.of(document, one.format, one.start, one.end) for one in item.evidence
            if (document := library.document(item, one.document)) is not None]


def duplicate_check(library: Library) -> Callable[[Item, Sequence[Item]], str | None]:
    """Return a check for duplicates: it explains why an item repeats an earlier one, or returns None.

    Two items are duplicates if they share an answer and their questions are similar: by five-character shingles
    (Jaccard index 0.7, or containment 0.7) or by the cosine of their vectors (0.95). The same question with another
    answer is a duplicate too, unless the item has a document of its own to answer it from. A paraphrased twin is kept
    if its literal twin is.
    """
    vectors: dict[str, Any] = {}

    def check(item: Item, kept: Sequence[Item]) -> str | None:
        if item.tags.get("wording") == "paraphrased":
            there = any(other.tags.get("pair") == item.tags["pair"] for other in kept)
            return None if there else "its twin was lost"
        own = {normalize_answer(answer) for answer in item.answers}
        alike = [other for other in kept if max(similarity(shingles(item.question), shingles(other.question))) >= _SAME]
        sharing = [other for other in kept if own & {normalize_answer(answer) for answer in other.answers}]
        if any(other in sharing for other in alike):
            return "it repeats another item's question"
        if not item.documents and any(_is_same_question(item.question, other.question) for other in alike):
            return "it repeats another item's question with a different answer"
        new = [one for one in (item, *sharing) if one.id not in vectors] if sharing else []
        if new:
            texts = [one.question for one in new]
            vectors.update(zip((one.id for one in new), library.embedder().embed_queries(texts), strict=True))
        near = any(float(vectors[item.id] @ vectors[other.id]) >= _NEAR for other in sharing)
        return "it repeats another item's question" if near else None

    return check


def _is_same_question(one: str, other: str) -> bool:
    """Return whether two questions differ only in case, punctuation, articles and function words."""
    near, _ = similarity(shingles(one), shingles(other))
    words = content_words(one) == content_words(other) and extract_numbers(one) == extract_numbers(other)
    return normalize_answer(one) == normalize_answer(other) or (near >= _EQUAL and words)
