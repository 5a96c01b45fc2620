"""A pipeline behind OpenAI's chat completions API. Its messages also list the passages that it read and cites."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ragbed.documents.http import BadReply, sanitize_line
from ragbed.experiments.guests.pipelines.http_endpoint import HttpChannel, URLPipeline
from ragbed.experiments.guests.pipelines.pipeline import JSONPath, Request, find_all
from ragbed.strategies.reading import find_citations, renumber_citations

if TYPE_CHECKING:
    from ragbed.agents.model_settings import CallLimits
    from ragbed.experiments.guests.pipelines.recipe import PipelineReply

_ROUTE = "/chat/completions"
_MESSAGE = "$.choices[0].message"
_SOURCES = (f"{_MESSAGE}.context.citations[*]", "$.search_results[*]", "$.citations[*]")
_AZURE_MARK = re.compile(r"\[doc(\d+)\]")


class ChatCompletions(URLPipeline):
    """A service whose chat completions include its sources: as annotations (OpenAI, OpenRouter, `ragbed serve`), as
    `search_results` or `citations` (Perplexity), or as the message's `context` (Azure). All of these are converted to
    `answer`, `contexts`, `citations` and `refused`.

    Attributes:
        url: the base URL, such as `http://127.0.0.1:8000/v1`, or the route's URL.
        model: sent as `model`; if omitted, the model in `request`.
    """

    kind: Literal["openai"] = "openai"
    model: str | None = None
    request: Request = Field(default={"messages": [{"role": "user", "content": "{question}"}]})
    prompt_tokens: JSONPath = "$.usage.prompt_tokens"
    completion_tokens: JSONPath = "$.usage.completion_tokens"
    price: JSONPath = "$.usage.cost.total_cost | $.usage.cost"

    def open(self, limits: CallLimits) -> HttpChannel:
        """Return a connection to the route."""
        return self.connect(self.url if self.url.endswith(_ROUTE) else self.url.rstrip("/") + _ROUTE, limits)

    def fill(self, fields: Mapping[str, Any]) -> Any:
        """Return the request for a question's fields, with the model."""
        body = super().fill(fields)
        return body if self.model is None else {"model": self.model, **body}

    def read(self, content: Any, fields: Mapping[str, Any]) -> PipelineReply:
        """Read a completion. Raises BadReply if it has no answer."""
        return super().read({**content, **_convert(content)} if isinstance(content, dict) else content, fields)


def _convert(completion: dict[str, Any]) -> dict[str, Any]:
    if errors := [one for one in find_all("$.error.message", completion) if isinstance(one, str)]:
        raise BadReply(f"it failed: {sanitize_line(errors[0])}")  # OpenRouter reports a model's failure with status 200
    pieces = find_all(f"{_MESSAGE}.content | {_MESSAGE}.content[*].text", completion)
    text = "".join(one for one in pieces if isinstance(one, str))  # content: a string or a list of parts
    refusal = next((one for one in find_all(f"{_MESSAGE}.refusal", completion) if isinstance(one, str)), "")
    refused = bool(refusal) or "refused" in find_all("$.ragbed.outcome", completion) or None
    found = {"answer": text or refusal or None, "refused": refused}
    if sources := next(filter(None, (find_all(path, completion) for path in _SOURCES)), None):
        return {**found, "answer": _AZURE_MARK.sub(r"[\1]", text), "contexts": list(map(_context, sources)),
                "citations": []}  # numbers in brackets in the text cite these
    return {**found, **_read_annotations(text, completion)} if text else found


def _read_annotations(text: str, completion: dict[str, Any]) -> dict[str, Any]:
    """Return answer, contexts and citations. An annotation at a bracket such as `[2]` names the source behind the
    service's number; the number becomes a place in the contexts.
    """
    evidence = {one["n"]: one for one in _objects("$.ragbed.evidence[*]", completion) if type(one.get("n")) is int}
    contexts = [{**one, "document": one.get("name")} for one in evidence.values()]
    place_of = {number: place for place, number in enumerate(evidence, start=1)}
    marks: Any = {(start, end): [number for number in numbers if not evidence or number in evidence]
                  for start, end, numbers in find_citations(text)}
    cited = []
    for one in _objects(f"{_MESSAGE}.annotations[*]", completion):
        nested = one.get(str(one.get("type")))
        fields = {**one, **(nested if isinstance(nested, dict) else {})}
        unread = marks.get((fields.get("start_index"), fields.get("end_index")))
        number, context = unread.pop(0) if unread else None, _context(fields)
        if number in evidence:
            contexts[place_of[number] - 1]["text"] = context["text"]
            continue
        if context not in contexts:
            contexts.append(context)
        cited.append(contexts.index(context) + 1)
        if number is not None:
            place_of[number] = cited[-1]
    return {"answer": renumber_citations(text, place_of, len(contexts)) if place_of else text, "contexts": contexts,
            "citations": cited}


def _objects(path: str, completion: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in find_all(path, completion) if isinstance(one, dict)]


def _context(source: Any) -> dict[str, Any]:
    """Return a source with the field names of a context. A source that is a string is a URL."""
    if not isinstance(source, dict):
        return {"document": source}
    text, document = (next((source[name] for name in names if isinstance(source.get(name), str)), "") for names in (
        ("cited_text", "content", "quote", "snippet"), ("filepath", "filename", "url", "file_id", "title")))
    return {"text": text, "document": document}
