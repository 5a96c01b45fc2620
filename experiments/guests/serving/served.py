"""A served answer: its text, the marks of its citations, and what they cite, as plain JSON that every route reads."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote, urlencode

from ragbed.agents.types import Answer, DecisionStep, GenerateStep, SearchStep, Step
from ragbed.documents.types import Chunk, encodable
from ragbed.experiments.formatting import visible
from ragbed.retrieval.index import Index
from ragbed.strategies.history import ASKS
from ragbed.strategies.reading import citation_marks, outside_answer

_LONGEST_QUOTE = 2_000  # characters of a passage beside an answer; its document has it whole
_LONGEST_REPLY = 8_000  # characters of a call's reply; its record has it whole
_LIST = re.compile(r"\n\nSources:(?:\n- \[\d+\] \[[^\n]*>\))+\s*\Z")

Served = Mapping[str, Any]


def display_text(answer: Answer) -> str:
    """Return the text of an answer, in which every passage that it cites has its number: citations that came in a field
    of their own follow it. What is no answer says why."""
    said = encodable(answer.text)
    if answer.outcome not in ("answered", "refused"):
        why = answer.failure.message if answer.failure else "the model's reply holds no answer"
        return said or f"No answer: {why}."
    marked = {number for *_, numbers in citation_marks(said) for number in numbers}
    missing = "".join(f"[{number}]" for number in answer.cited if number not in marked)
    return f"{said} {missing}" if missing else said


def answer_json(answer: Answer, text: str, index: Index, **known: Any) -> dict[str, Any]:
    """Return an answer as it is served and kept.

    Args:
        text: as it was shown, whose offsets `citations` have, in code points.
        known: further fields, such as its record's id.
    """
    sources = {passage.number: _source(passage.number, passage.chunk, index, passage.number in answer.cited)
               for passage in answer.in_view}
    marks = [{"start": start, "end": end, "n": number} for start, end, numbers in citation_marks(text)
             for number in numbers if number in answer.cited]
    standalone = next((step.why for step in answer.trace if isinstance(step, DecisionStep) and step.what == ASKS), None)
    return {**known, "standalone": standalone, "outcome": answer.outcome, "text": text, "citations": marks,
            "sources": list(sources.values()), "usage": asdict(answer.used),
            "invalid_citations": list(answer.invalid_citations), "notes": list(answer.notes),
            "seconds": round(answer.cost.seconds, 3),
            "reasoning": _reasoning(answer), "steps": [_step(step) for step in answer.trace],
            "failure": asdict(answer.failure) if answer.failure else None}


def passage_json(number: int, chunk: Chunk, index: Index) -> dict[str, Any]:
    """Return a passage that a search found, under its number."""
    return _source(number, chunk, index, cited=False)


def url_citations(answer: Served, base: str) -> list[dict[str, Any]]:
    """Return the citations as OpenAI's clients have them, one for each number at each mark; `base` is the server's URL.
    """
    sources = {source["n"]: source for source in answer["sources"]}
    return [{"type": "url_citation", "start_index": mark["start"], "end_index": mark["end"],
             "url": base + sources[mark["n"]]["url"], "title": sources[mark["n"]]["title"],
             "cited_text": sources[mark["n"]]["text"]} for mark in answer["citations"]]


def cited_sources(answer: Served) -> Sequence[Served]:
    """Return the sources that the answer cites, in the order of their numbers."""
    return [source for source in answer["sources"] if source["cited"]]


def markdown_sources(answer: Served, base: str) -> str:
    """Return the cited sources as a list in Markdown, with a blank line before; empty where there is none."""
    lines = [f"- [{source['n']}] [{_plain(source['title'])}](<{base}{source['url']}>)"
             for source in cited_sources(answer)]
    return "\n\nSources:\n" + "\n".join(lines) if lines else ""


def without_sources(text: str) -> str:
    """Return a text that a client sends back without the list that `markdown_sources` put below it."""
    return _LIST.sub("", text)


def _reasoning(answer: Answer) -> str:
    """What models thought apart from their replies, and what the last reply says before its answer."""
    calls = [step for step in answer.trace if isinstance(step, GenerateStep)]
    said = outside_answer(calls[-1].text) if calls and answer.tagged and not calls[-1].text.startswith("{") else ""
    return encodable("\n\n".join(filter(None, [*(call.reasoning for call in calls), said])))


def _step(step: Step) -> dict[str, Any]:
    """A step of the way to an answer, without its prompt."""
    if isinstance(step, DecisionStep):
        return {"kind": "decision", "what": encodable(step.what), "why": encodable(step.why)}
    failure = step.failure.message if step.failure else None
    if isinstance(step, SearchStep):
        return {"kind": "search", "query": encodable(step.query), "found": list(step.found), "failure": failure}
    return {"kind": "call", "purpose": step.purpose, "shown": list(step.shown),
            "text": encodable(step.text[:_LONGEST_REPLY]), "prompt_tokens": step.usage.prompt_tokens,
            "completion_tokens": step.usage.completion_tokens, "failure": failure}


def _plain(title: str) -> str:
    """A title of a document's, which may not be a link, an image or a heading of its own."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()<>#+!|~&" else sign for sign in " ".join(title.split()))


def _source(number: int, chunk: Chunk, index: Index, cited: bool) -> dict[str, Any]:
    name = index.source_of(chunk.document)
    pages = chunk.pages
    place = f"page={pages[0]}" if pages else "passage"
    url = f"/documents/{quote(chunk.document, safe='')}?{urlencode({'chunk': chunk.id})}#{place}"
    places = "" if not pages else f", page {pages[0]}" if pages[0] == pages[1] else f", pages {pages[0]}-{pages[1]}"
    return {"n": number, "title": visible(name) + places, "url": url, "text": chunk.content[:_LONGEST_QUOTE],
            "document": chunk.document, "chunk": chunk.id, "name": visible(name),
            "pages": list(pages) if pages else None, "start": chunk.start, "end": chunk.end, "cited": cited}
