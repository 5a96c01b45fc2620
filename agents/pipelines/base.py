"""What pipelines have in common: their settings, the request made of a question, and the reading of what comes back."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ragbed.documents.errors import MissingExtra
from ragbed.documents.http import BadReply
from ragbed.documents.json import loads
from ragbed.documents.types import digest
from ragbed.strategies.reading import REFUSAL, fold
from ragbed.strategies.reasoning.pipeline import MOST_CONTEXTS, ReadContext, Returned, name_of
from ragbed.strategies.types import Rules

if TYPE_CHECKING:
    import jsonpath

    from ragbed.agents.settings import CallLimits
    from ragbed.documents.http import Response

FORM = "pipeline:"  # before a pipeline's name, where a model's name is expected
FIELDS = ("id", "question", "options", "history", "documents")
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_TEXT = ("text", "content", "page_content", "passage")  # what the fields of a context are called, the usual one first
_DOCUMENT = ("document", "document_id", "doc_id", "docid", "source", "file_path", "url", "id")
_LONGEST_NAME = 80


def _one_line(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError(f"a pipeline's name is one line of at most {_LONGEST_NAME} characters that can be printed")
    return name


@lru_cache(maxsize=256)
def _compiled(path: str) -> jsonpath.CompoundJSONPath | jsonpath.JSONPath:
    MissingExtra.check("pipelines", "jsonpath")
    import jsonpath
    return jsonpath.compile(path)


def find_all(path: str, value: Any) -> list[Any]:
    """Return everything that a JSONPath selects in a JSON value."""
    return _compiled(path).findall(value)


def _compiles(path: str) -> str:
    MissingExtra.check("pipelines", "jsonpath")
    import jsonpath
    try:
        _compiled(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"{path!r} is no JSONPath, such as $.answer or $.documents[*].text: {error}") from None
    return path


JSONPath = Annotated[str, AfterValidator(_compiles)]


def _asks(request: Any) -> Any:
    written = json.dumps(request, default=str)  # YAML has dates
    if "{question}" not in written:
        raise ValueError("nothing in it is {question}, the place of the question's text")
    return json.loads(written)


Request = Annotated[Any, AfterValidator(_asks)]


class PipelineSettings(BaseModel):
    """Settings that every kind of pipeline has.

    Attributes:
        name: what tables call it.
        request: what it is sent, as JSON: in any text of it `{question}`, `{options}`, `{history}`, `{documents}` and
            `{id}` are filled in; a text that is nothing else becomes the value itself. A pipeline that is sent no
            documents finds its own, and is one cell; one that is sent them is asked under each condition of the run.
        answer, contexts, citations, refused, prompt_tokens, completion_tokens, price: where these stand in what comes
            back, as JSONPath (RFC 9535). Where nothing stands there, it did not say; a text or number that comes back
            alone is the answer.
        refusals: what its refusals begin with, such as `I don't know`, in whatever case and punctuation.
        rules: what it may do, which decides how it is scored; the first of the run's where it is None.
        concurrency: how many questions it is asked at once, at most; as `concurrency` of the run where it is None.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    recorded: ClassVar[bool] = False  # whether its answers are there already, to questions as they were asked

    name: Annotated[str, AfterValidator(_one_line)]
    request: Request = Field(default={"question": "{question}"})
    answer: JSONPath = "$.answer"
    contexts: JSONPath = "$.contexts"
    citations: JSONPath = "$.citations"
    refused: JSONPath = "$.refused"
    prompt_tokens: JSONPath = "$.prompt_tokens"
    completion_tokens: JSONPath = "$.completion_tokens"
    price: JSONPath = "$.price"
    refusals: tuple[str, ...] = ()
    rules: Rules | None = None
    concurrency: int | None = Field(default=None, ge=1, le=1024)

    @property
    def cell_model(self) -> str:
        """What stands where a model's name does."""
        return FORM + self.name

    @property
    def takes_documents(self) -> bool:
        """Whether it is sent the documents that a condition places."""
        return "{documents}" in json.dumps(self.request)

    @property
    def identity(self) -> str:
        """What the journal knows it by: its name and all that decides its answers and can be known here, and no host;
        SettingsError where a file of it cannot be read."""
        said = self.model_dump_json(exclude={"url", "key_variable", "concurrency", "path"})
        return FORM + digest(said, *self.sources)

    @property
    def sources(self) -> Sequence[str]:
        """Hashes of the files that it is made of."""
        return ()

    def open(self, limits: CallLimits) -> Channel:
        """Make what reaches it; UserError where that cannot be made."""
        raise NotImplementedError

    def check(self, questions: Mapping[str, str], repeats: int) -> str | None:
        """Return what a run is to note that asks these questions, texts by id, so often; None where there is nothing.
        Raises UserError where it has not what such a run wants of it."""
        return None

    def filled(self, fields: Mapping[str, Any]) -> Any:
        """Return the request for a question."""
        return _filled(self.request, {**fields, "id": name_of(fields["id"])})

    def read(self, came: Any, fields: Mapping[str, Any]) -> Returned:
        """Return what came back in the common form; BadReply where it holds no answer."""
        if isinstance(came, str | int | float) and not isinstance(came, bool):
            came = {"answer": came}
        if not isinstance(came, dict | list):
            raise BadReply(f"it returned {type(came).__name__}, not an object with an answer at {self.answer}")
        contexts = tuple(map(_context, self._found(self.contexts, came)[:MOST_CONTEXTS]))
        names = [one.document for one in contexts] or [one.get("document") for one in fields.get("documents", ())]
        refused, answer = self._one(self.refused, came, object), self._one(self.answer, came, str | int | float)
        if answer is None and not refused:
            raise BadReply(f"it returned nothing at {self.answer} that is an answer")
        text = "" if answer is None else str(answer)
        if refused is None and any(fold(text).startswith(fold(one)) for one in self.refusals):
            refused = True
        try:
            return Returned(
                answer=text or REFUSAL * bool(refused), contexts=contexts, refused=refused,
                citations=tuple(_place(one, names) for one in self._found(self.citations, came)),
                prompt_tokens=self._one(self.prompt_tokens, came, int) or 0,
                completion_tokens=self._one(self.completion_tokens, came, int) or 0,
                price=self._one(self.price, came, int | float))
        except ValidationError as error:
            at, said = error.errors()[0]["loc"], error.errors()[0]["msg"]
            raise BadReply(f"it returned {'.'.join(map(str, at))} that cannot be taken: {said}") from None

    def _found(self, path: str, came: Any) -> list[Any]:
        found = find_all(path, came)
        if len(found) == 1 and (found[0] is None or isinstance(found[0], list)):
            return found[0] or []
        return found

    def _one(self, path: str, came: Any, kind: Any) -> Any:
        found = next(iter(find_all(path, came)), None)
        return found if isinstance(found, kind) and (kind is object or not isinstance(found, bool)) else None


@dataclass(frozen=True, slots=True)
class Channel:
    """Reaches a pipeline; shaped as the chat client of a model is.

    Attributes:
        url: where it is, as errors say it.
        key: that it is sent; empty where it has none.
    """

    settings: PipelineSettings
    url: str = ""
    key: str = ""

    def body(self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> Any:
        """Return the request for a message that holds the question's fields as JSON: the settings' template, filled."""
        return self.settings.filled(fields_of(str(messages[0]["content"])))

    async def post(self, body: Any) -> Response:
        """Send a request once. Raises ConnectionError where no whole reply comes back, and CallError where it failed
        for good."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close what was opened."""


def fields_of(content: str) -> dict[str, Any]:
    """Return the fields that the recipe wrote into its message."""
    fields: dict[str, Any] = loads(content, mend=True)
    return fields


def _filled(template: Any, fields: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        return {key: _filled(value, fields) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, fields) for value in template]
    if not isinstance(template, str):
        return template
    if (alone := _FIELD.fullmatch(template)) is not None:
        return fields[alone[1]]
    return _FIELD.sub(lambda found: _as_text(fields[found[1]]), template)


def _as_text(value: Any) -> str:
    """A field inside a longer text: options a line each, documents with a blank line between."""
    if isinstance(value, str):
        return value
    if all("label" in one for one in value):
        return "\n".join(f"{one['label']}. {one['text']}" for one in value)
    if all("text" in one for one in value):
        return "\n\n".join(f"[{place}] {one['text']}" for place, one in enumerate(value, start=1))
    return "\n".join(f"{one['question']}\n{one['answer']}" for one in value)


def _context(came: Any) -> ReadContext:
    if isinstance(came, str):
        return ReadContext(text=came)
    if not isinstance(came, Mapping):
        raise BadReply(f"a context of it is {type(came).__name__}, not a text or an object")
    about = [came[name] for name in ("metadata", "meta") if isinstance(came.get(name), Mapping)]
    every: Mapping[str, Any] = {**(about[0] if about else {}), **came}
    text = next((every[name] for name in _TEXT if isinstance(every.get(name), str)), "")
    document = next((str(every[name]) for name in _DOCUMENT if isinstance(every.get(name), str | int)), "")
    start, end = (every.get(name) if type(every.get(name)) is int and every[name] >= 0 else None
                  for name in ("start", "end"))
    return ReadContext(text=text, document=document, start=start, end=end)


def _place(cited: Any, names: Sequence[Any]) -> int:
    """The place of what a citation names; 0 where it is nowhere."""
    if isinstance(cited, Mapping):
        cited = next((cited[name] for name in (*_DOCUMENT, "index") if name in cited), None)
    if isinstance(cited, str):
        return names.index(cited) + 1 if cited in names else int(cited) if cited.isdecimal() else 0
    return cited if type(cited) is int and 0 <= cited <= MOST_CONTEXTS else 0
