"""A pipeline that speaks OpenAI's chat completions, and says beside its message what it read and cites."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ragbed.agents.pipelines.base import JSONPath, Request, find_all
from ragbed.agents.pipelines.http import HttpChannel, OfUrl
from ragbed.documents.http import BadReply, sanitize_line
from ragbed.strategies.reading import citation_marks
from ragbed.strategies.reasoning.pipeline import renumbered

if TYPE_CHECKING:
    from ragbed.agents.settings import CallLimits
    from ragbed.strategies.reasoning.pipeline import Returned

_ROUTE = "/chat/completions"
_MESSAGE = "$.choices[0].message"
_LISTED = (f"{_MESSAGE}.context.citations[*]", "$.search_results[*]", "$.citations[*]")
_MARK_OF_AZURE = re.compile(r"\[doc(\d+)\]")


class ChatCompletions(OfUrl):
    """A service that answers chat completions with its sources: as annotations (OpenAI, OpenRouter, `ragbed serve`), as
    `search_results` or `citations` (Perplexity), or as the message's `context` (Azure). To what comes back, `answer`,
    `contexts`, `citations` and `refused` are added, in one form for all of these.

    Attributes:
        url: the base URL, such as `http://127.0.0.1:8000/v1`, or that of the route itself.
        model: sent as `model`; None sends what `request` has.
    """

    kind: Literal["openai"] = "openai"
    model: str | None = None
    request: Request = Field(default={"messages": [{"role": "user", "content": "{question}"}]})
    prompt_tokens: JSONPath = "$.usage.prompt_tokens"
    completion_tokens: JSONPath = "$.usage.completion_tokens"
    price: JSONPath = "$.usage.cost.total_cost | $.usage.cost"

    def open(self, limits: CallLimits) -> HttpChannel:
        """Make its connections."""
        return self.channel(self.url if self.url.endswith(_ROUTE) else self.url.rstrip("/") + _ROUTE, limits)

    def filled(self, fields: Mapping[str, Any]) -> Any:
        """Return the request for a question, with the model."""
        body = super().filled(fields)
        return body if self.model is None else {"model": self.model, **body}

    def read(self, came: Any, fields: Mapping[str, Any]) -> Returned:
        """Return what came back in the common form; BadReply where it holds no answer."""
        return super().read({**came, **_common(came)} if isinstance(came, dict) else came, fields)


def _common(came: dict[str, Any]) -> dict[str, Any]:
    if failed := [one for one in find_all("$.error.message", came) if isinstance(one, str)]:
        raise BadReply(f"it failed: {sanitize_line(failed[0])}")  # OpenRouter reports failures with status 200
    said = find_all(f"{_MESSAGE}.content | {_MESSAGE}.content[*].text", came)
    text = "".join(one for one in said if isinstance(one, str))  # in one piece, or in parts
    refusal = next((one for one in find_all(f"{_MESSAGE}.refusal", came) if isinstance(one, str)), "")
    refused = bool(refusal) or "refused" in find_all("$.ragbed.outcome", came) or None
    found = {"answer": text or refusal or None, "refused": refused}
    if listed := next(filter(None, (find_all(path, came) for path in _LISTED)), None):
        return {**found, "answer": _MARK_OF_AZURE.sub(r"[\1]", text), "contexts": list(map(_context, listed)),
                "citations": []}  # of all that are listed, the brackets tell the cited ones
    return {**found, **_annotated(text, came)} if text else found


def _annotated(text: str, came: dict[str, Any]) -> dict[str, Any]:
    """The answer, contexts and citations of annotations. Where these stand at brackets such as `[2]`, the numbers are
    the service's own, and become places in the contexts."""
    evidence = {one["n"]: one for one in _objects("$.ragbed.evidence[*]", came) if type(one.get("n")) is int}
    contexts = [{**one, "document": one.get("name")} for one in evidence.values()]
    place_of = {number: place for place, number in enumerate(evidence, start=1)}
    marks: Any = {(start, end): [number for number in numbers if not evidence or number in evidence]
                  for start, end, numbers in citation_marks(text)}
    cited = []
    for one in _objects(f"{_MESSAGE}.annotations[*]", came):
        about = one.get(str(one.get("type")))
        fields = {**one, **(about if isinstance(about, dict) else {})}
        waiting = marks.get((fields.get("start_index"), fields.get("end_index")))
        number, context = waiting.pop(0) if waiting else None, _context(fields)
        if number in evidence:
            contexts[place_of[number] - 1]["text"] = context["text"]
            continue
        if context not in contexts:
            contexts.append(context)
        cited.append(contexts.index(context) + 1)
        if number is not None:
            place_of[number] = cited[-1]
    return {"answer": renumbered(text, place_of, len(contexts)) if place_of else text, "contexts": contexts,
            "citations": cited}


def _objects(path: str, came: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in find_all(path, came) if isinstance(one, dict)]


def _context(source: Any) -> dict[str, Any]:
    """A source under the names of a context; one that is a text is a URL."""
    if not isinstance(source, dict):
        return {"document": source}
    text, document = (next((source[name] for name in names if isinstance(source.get(name), str)), "") for names in (
        ("cited_text", "content", "quote", "snippet"), ("filepath", "filename", "url", "file_id", "title")))
    return {"text": text, "document": document}
