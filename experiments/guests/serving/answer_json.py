"""Convert a served answer to plain JSON: text, citations, sources, steps, usage. Each route adapts it to its API."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote, urlencode

from ragbed.agents.types import Answer, DecisionStep, GenerateStep, SearchStep, Step, ToolStep
from ragbed.documents.types import Chunk, replace_surrogates
from ragbed.experiments.formatting import visible
from ragbed.retrieval.index import Index
from ragbed.strategies.history import ASKS
from ragbed.strategies.reading import find_citations, text_outside_answer

_MAX_QUOTE = 2_000  # characters of a passage shown with an answer; the document view shows all of it
_MAX_REPLY = 8_000  # characters of a call's reply; the record holds all of it
_MAX_TOOL = 100  # characters of a tool's name, which a model may have made up
_SOURCES_LIST = re.compile(r"\n\nSources:(?:\n- \[\d+\] \[[^\n]*>\))+\s*\Z")

AnswerJson = Mapping[str, Any]


def display_text(answer: Answer) -> str:
    """Return the text of an answer as users see it.

    Citations from a field of a JSON reply are appended as marks such as `[1]`. If the question failed, the text says
    why."""
    text = replace_surrogates(answer.text)
    if answer.outcome not in ("answered", "refused"):
        why = answer.failure.message if answer.failure else "the model's reply holds no answer"
        return text or f"No answer: {why}."
    marked = {number for *_, numbers in find_citations(text) for number in numbers}
    missing = "".join(f"[{number}]" for number in answer.cited if number not in marked)
    return f"{text} {missing}" if missing else text


def answer_json(answer: Answer, text: str, index: Index, **fields: Any) -> dict[str, Any]:
    """Return an answer as JSON, to serve and to store.

    Args:
        text: text that was shown; offsets in `citations` count its code points.
        fields: further fields, such as the id of its record.
    """
    sources = {passage.number: _source(passage.number, passage.chunk, index, passage.number in answer.cited)
               for passage in answer.in_view}
    marks = [{"start": start, "end": end, "n": number} for start, end, numbers in find_citations(text)
             for number in numbers if number in answer.cited]
    standalone = next((step.why for step in answer.trace if isinstance(step, DecisionStep) and step.what == ASKS), None)
    return {**fields, "standalone": standalone, "outcome": answer.outcome, "text": text, "citations": marks,
            "sources": list(sources.values()), "usage": asdict(answer.used),
            "invalid_citations": list(answer.invalid_citations), "notes": list(answer.notes),
            "seconds": round(answer.cost.seconds, 3),
            "reasoning": _reasoning(answer), "steps": [step_json(step) for step in answer.trace],
            "failure": asdict(answer.failure) if answer.failure else None}


def passage_json(number: int, chunk: Chunk, index: Index) -> dict[str, Any]:
    """Return a passage that a search found, with its number, as JSON."""
    return _source(number, chunk, index, cited=False)


def url_citations(answer: AnswerJson, base_url: str) -> list[dict[str, Any]]:
    """Return the citations in the form of OpenAI's API, one per number of each mark."""
    sources = {source["n"]: source for source in answer["sources"]}
    return [{"type": "url_citation", "start_index": mark["start"], "end_index": mark["end"],
             "url": base_url + sources[mark["n"]]["url"], "title": sources[mark["n"]]["title"],
             "cited_text": sources[mark["n"]]["text"]} for mark in answer["citations"]]


def cited_sources(answer: AnswerJson) -> Sequence[AnswerJson]:
    """Return the sources that an answer cites, in order of their numbers."""
    return [source for source in answer["sources"] if source["cited"]]


def markdown_sources(answer: AnswerJson, base_url: str) -> str:
    """Return the cited sources as a Markdown list that starts with a blank line; empty if there are none."""
    lines = [f"- [{source['n']}] [{_escape_markdown(source['title'])}](<{base_url}{source['url']}>)"
             for source in cited_sources(answer)]
    return "\n\nSources:\n" + "\n".join(lines) if lines else ""


def strip_sources(text: str) -> str:
    """Return a text without the list that `markdown_sources` appended, as clients send answers back."""
    return _SOURCES_LIST.sub("", text)


def _reasoning(answer: Answer) -> str:
    """Return the reasoning that models sent separately, and the text of the last reply before its answer."""
    calls = [step for step in answer.trace if isinstance(step, GenerateStep)]
    tagged = bool(calls) and answer.tagged and not calls[-1].text.startswith("{")
    before = text_outside_answer(calls[-1].text) if tagged else ""
    return replace_surrogates("\n\n".join(filter(None, [*(call.reasoning for call in calls), before])))


def call_json(tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return a call of a tool, which a model wrote, as a name and JSON of bounded length."""
    text = json.dumps(arguments, ensure_ascii=False)
    if len(text) > _MAX_REPLY:
        text = json.dumps({"cut": text[:_MAX_REPLY]}, ensure_ascii=False)
    return {"tool": replace_surrogates(tool[:_MAX_TOOL]), "arguments": replace_surrogates(text)}


def step_json(step: Step) -> dict[str, Any]:
    """Return a step of a question as JSON."""
    if isinstance(step, DecisionStep):
        return {"kind": "decision", "what": replace_surrogates(step.what), "why": replace_surrogates(step.why)}
    failure = step.failure.message if step.failure else None
    if isinstance(step, SearchStep):
        return {"kind": "search", "query": replace_surrogates(step.query), "found": list(step.found),
                "failure": failure}
    if isinstance(step, ToolStep):
        return {"kind": "tool", **call_json(step.tool, step.arguments), "found": list(step.found), "failure": failure,
                "text": replace_surrogates("\n".join(
                    f"[{part}]" if isinstance(part, int) else part for part in step.parts)[:_MAX_REPLY])}
    return {"kind": "call", "purpose": step.purpose, "shown": list(step.shown),
            "text": replace_surrogates(step.text[:_MAX_REPLY]), "prompt_tokens": step.usage.prompt_tokens,
            "completion_tokens": step.usage.completion_tokens, "failure": failure}


def _escape_markdown(title: str) -> str:
    """Escape a document's title, so that it cannot be a link, an image or a heading."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()<>#+!|~&" else sign for sign in " ".join(title.split()))


def _address(chunk: Chunk, index: Index) -> str:
    """Return the id of a chunk of the index, or the place of another span of a document, which a tool found."""
    try:
        index.chunks.row(chunk.id)
    except KeyError:
        return f"{chunk.format}:{chunk.start}-{chunk.end}"
    return chunk.id


def _source(number: int, chunk: Chunk, index: Index, cited: bool) -> dict[str, Any]:
    name = visible(index.source_of(chunk.document))
    pages = chunk.pages
    anchor = f"page={pages[0]}" if pages else "passage"
    url = f"/documents/{quote(chunk.document, safe='')}?{urlencode({'chunk': _address(chunk, index)})}#{anchor}"
    where = "" if not pages else f", page {pages[0]}" if pages[0] == pages[1] else f", pages {pages[0]}-{pages[1]}"
    return {"n": number, "title": name + where, "url": url, "text": chunk.content[:_MAX_QUOTE],
            "document": chunk.document, "chunk": chunk.id, "name": name,
            "pages": list(pages) if pages else None, "start": chunk.start, "end": chunk.end, "cited": cited}
