"""Base of most pipelines: build a JSON request from a question, send it, and read the JSON reply by JSONPath."""
from __future__ import annotations

import contextlib
import json
import operator
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from ragbed.agents.client import Completion, ModelClient
from ragbed.agents.model_settings import PIPELINE_PREFIX
from ragbed.agents.models import NoCalls
from ragbed.agents.replies import OnEvent, fixed_price
from ragbed.agents.tools import QUESTION_TOOLS, make_by_guest
from ragbed.agents.types import redact_reply
from ragbed.documents.errors import CallError, MissingExtra, SettingsError
from ragbed.documents.http import MAX_REPLY_BYTES, Address, BadReply
from ragbed.documents.json import loads
from ragbed.documents.types import digest
from ragbed.experiments.guests.pipelines.recipe import (
    MAX_CONTEXTS,
    PipelineReply,
    ReadContext,
    ask_pipeline,
    opaque_id,
)
from ragbed.experiments.settings.pipelines import PipelineSettings
from ragbed.strategies.reading import REFUSAL, fold
from ragbed.strategies.types import Generate, Reply, Tools, Usage

if TYPE_CHECKING:
    import jsonpath

    from ragbed.agents.http_errors import StreamMode
    from ragbed.agents.model_settings import CallLimits, ModelSettings
    from ragbed.agents.openai_chat import Chat
    from ragbed.documents.http import Response
    from ragbed.documents.types import Chunk, Document
    from ragbed.experiments.guests.pipelines.tool_server import ToolServer, ToolSession
    from ragbed.experiments.question import Question
    from ragbed.experiments.record import Level
    from ragbed.strategies.types import Evidence, Reasoning

FIELDS = ("id", "question", "options", "history", "documents", "tools")
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_DEFAULT_TOOLS = ["search", "list", "grep", "open"]
_TEXT = ("text", "content", "page_content", "passage")  # names of a context's text, the usual one first
_DOCUMENT = ("document", "document_id", "doc_id", "docid", "source", "file_path", "url", "id")


@lru_cache(maxsize=256)
def _compile_path(path: str) -> jsonpath.CompoundJSONPath | jsonpath.JSONPath:
    MissingExtra.check("pipelines", "jsonpath")
    import jsonpath
    return jsonpath.compile(path)


def find_all(path: str, content: Any) -> list[Any]:
    """Return every value that a JSONPath selects in JSON."""
    return _compile_path(path).findall(content)


def _check_path(path: str) -> str:
    MissingExtra.check("pipelines", "jsonpath")
    import jsonpath
    try:
        _compile_path(path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"{path!r} is not a JSONPath such as $.answer or $.documents[*].text: {error}") from None
    return path


def _check_request(request: Any) -> Any:
    as_json = json.dumps(request, default=str)  # YAML turns some text into dates
    if "{question}" not in as_json:
        raise ValueError("{question} is missing; write it where the question's text belongs")
    return json.loads(as_json)


JSONPath = Annotated[str, AfterValidator(_check_path)]
Request = Annotated[Any, AfterValidator(_check_request)]
_session: ContextVar[ToolSession | None] = ContextVar("session", default=None)


def _check_tools(tools: Any) -> Any:
    try:
        return make_by_guest("check", _DEFAULT_TOOLS if tools == "mcp" else tools) if tools else ()
    except SettingsError as error:
        raise ValueError(str(error)) from None


ToolList = Annotated[tuple[str | dict[str, Any], ...], BeforeValidator(_check_tools)]


class JSONPipeline(PipelineSettings):
    """A pipeline that takes JSON and returns JSON.

    Attributes:
        request: the JSON to send. `{question}`, `{options}`, `{history}`, `{documents}` and `{id}` are filled in
            wherever they occur in a string; a string that is only a field becomes its value. With `{documents}` or
            `{tools}`, the pipeline has a cell per condition. Without, it retrieves by itself, and has a single cell.
        tools: tools of ragbed that the pipeline may call, as for the strategy `agent`; `mcp` stands for search, list,
            grep and open. `{tools}` in the request becomes the address of an MCP server for the question.
        answer, contexts, citations, refused, prompt_tokens, completion_tokens, price: where to find each in the reply,
            as JSONPath (RFC 9535). A value that is missing is unknown. A bare string or number is the answer.
        refusals: beginnings of the pipeline's refusals, such as `I don't know`; case and punctuation are ignored.
    """

    request: Request = Field(default={"question": "{question}"})
    answer: JSONPath = "$.answer"
    contexts: JSONPath = "$.contexts"
    citations: JSONPath = "$.citations"
    refused: JSONPath = "$.refused"
    prompt_tokens: JSONPath = "$.prompt_tokens"
    completion_tokens: JSONPath = "$.completion_tokens"
    price: JSONPath = "$.price"
    refusals: tuple[str, ...] = ()
    tools: ToolList = Field(default=(), exclude_if=operator.not_)

    @model_validator(mode="after")
    def _check_tools(self) -> Self:
        if self.tools and (self.recorded or "{tools}" not in json.dumps(self.request)):
            raise ValueError("tools: the pipeline does not get their address; write {tools} in its `request`, or give "
                             "your function a parameter `tools`")
        if self.tools and "{documents}" in json.dumps(self.request):
            raise ValueError("request: {documents} and {tools} cannot be combined: the tools find the documents")
        if not self.tools and "{tools}" in json.dumps(self.request):
            raise ValueError("request: {tools} is the address of tools, but there are none; add tools: mcp")
        return self

    @property
    def called_tools(self) -> Tools:
        """Return the tools that the pipeline may call."""
        return Tools(self.tools)

    @property
    def takes_documents(self) -> bool:
        """Return whether the request has a place for documents, or for tools that read them."""
        return bool(self.tools) or "{documents}" in json.dumps(self.request)

    def match_contexts(self, evidence: Evidence, question: Question, documents: Mapping[str, Document],
                       gold: Sequence[Chunk]) -> tuple[Evidence, Mapping[int, Level | None]]:
        """Match contexts with documents by the names that the pipeline gives them, by text, and by words."""
        from ragbed.experiments.guests.pipelines.context_matching import ContextMatcher
        matched = ContextMatcher(question, documents, gold).match(evidence)
        return matched.evidence, matched.levels

    @property
    def identity(self) -> str:
        """Return a hash of the settings and of the pipeline's source files."""
        settings = self.model_dump_json(exclude={"url", "key_variable", "concurrency", "path"})
        return PIPELINE_PREFIX + digest(settings, *self.sources)

    @property
    def sources(self) -> Sequence[str]:
        """Return hashes of the pipeline's source files. Raises SettingsError if one cannot be read."""
        return ()

    @property
    def recipe(self) -> Reasoning:
        """Return the recipe that all these pipelines share."""
        return partial(ask_pipeline, documents="{documents}" in json.dumps(self.request) or not self.tools)

    def open(self, limits: CallLimits) -> Channel:
        """Open the connection to the pipeline. Raises UserError if it cannot be opened."""
        raise NotImplementedError

    @contextlib.asynccontextmanager
    async def open_client(self, calls: ModelSettings, known: str | None = None) -> AsyncIterator[PipelineClient]:
        """Open a client, which is closed at the end."""
        channel = None if known is not None else self.open(calls.calls)
        client = PipelineClient(self, known or self.identity, channel, calls)
        try:
            yield client
        finally:
            await client.aclose()

    def fill(self, fields: Mapping[str, Any]) -> Any:
        """Return the request filled in with a question's fields."""
        if (session := _session.get()) is not None:
            session.begin()
        return _fill(self.request, {**fields, "id": opaque_id(fields["id"]), "tools": session.url if session else ""})

    def read(self, content: Any, fields: Mapping[str, Any]) -> PipelineReply:
        """Read the reply to a question's fields. Raises BadReply if it has no answer, or a value of another type."""
        if isinstance(content, str | int | float) and not isinstance(content, bool):
            content = {"answer": content}
        if not isinstance(content, dict | list):
            raise BadReply(f"it returned {type(content).__name__}, not an object with an answer at {self.answer}")
        contexts = tuple(map(_read_context, self._find_all(self.contexts, content)[:MAX_CONTEXTS]))
        names = [one.document for one in contexts] or [one.get("document") for one in fields.get("documents", ())]
        refused = self._find(self.refused, content, object)
        answer = self._find(self.answer, content, str | int | float)
        if answer is None and not refused:
            raise BadReply(f"it returned no answer at {self.answer}")
        text = "" if answer is None else str(answer)
        if refused is None and any(fold(text).startswith(fold(one)) for one in self.refusals):
            refused = True
        try:
            return PipelineReply(
                answer=text or REFUSAL * bool(refused), contexts=contexts, refused=refused,
                citations=tuple(_place(one, names) for one in self._find_all(self.citations, content)),
                prompt_tokens=self._find(self.prompt_tokens, content, int) or 0,
                completion_tokens=self._find(self.completion_tokens, content, int) or 0,
                price=self._find(self.price, content, int | float))
        except ValidationError as error:
            place, why = error.errors()[0]["loc"], error.errors()[0]["msg"]
            raise BadReply(f"it returned an invalid {'.'.join(map(str, place))}: {why}") from None

    def _find_all(self, path: str, content: Any) -> list[Any]:
        found = find_all(path, content)
        if len(found) == 1 and (found[0] is None or isinstance(found[0], list)):
            return found[0] or []
        return found

    def _find(self, path: str, content: Any, kind: Any) -> Any:
        found = next(iter(find_all(path, content)), None)
        return found if isinstance(found, kind) and (kind is object or not isinstance(found, bool)) else None


@dataclass(frozen=True, slots=True)
class Channel:
    """A connection to a pipeline, with the methods that a model's chat client has.

    Attributes:
        url: address of the pipeline, for error messages.
        key: the API key that is sent; empty if there is none.
    """

    settings: JSONPipeline
    url: str = ""
    key: str = ""

    def body(self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> Any:
        """Return the request for a message of the recipe. The message holds the question's fields as JSON."""
        return self.settings.fill(parse_fields(str(messages[0]["content"])))

    async def post(self, body: Any) -> Response:
        """Send a request once. Raises ConnectionError if no complete reply arrives, and CallError if a retry would not
        help."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close the connection."""


class PipelineClient(ModelClient):
    """Client of one pipeline. `channel` is None in a replay, which makes no call."""

    def __init__(self, pipeline: JSONPipeline, identity: str, channel: Channel | None, calls: ModelSettings) -> None:
        prices = calls.prices.get(pipeline.cell_model)
        limits = calls.calls
        if pipeline.concurrency is not None:
            limits = limits.model_copy(update={"concurrency": pipeline.concurrency})
        at = NoCalls("this pipeline was opened for a replay, which makes no calls") if channel is None else \
            Address(channel.url, channel.key)
        self._server = _open_server() if channel is not None and pipeline.tools else None
        super().__init__(pipeline.cell_model, identity, pipeline.name, at,
                         (lambda *tokens: None) if prices is None else fixed_price(prices), limits)
        self._pipeline = pipeline
        if isinstance(at, Address):
            self._chat, self._at = cast("Chat", channel), at

    @property
    def estimated(self) -> bool:
        """Return False, because the pipeline's calls to its models are unknown."""
        return False

    @property
    def fixed_price(self) -> bool:
        """Return True, because a reply without a price makes the run's cost unknown."""
        return True

    def parameters(self, action: Generate, max_tokens: int, repeat: int = 0) -> dict[str, Any]:
        """Return the repeat if it is not the first, and a hash of the question's tools. A pipeline's other parameters
        are part of its identity."""
        tools = QUESTION_TOOLS.get()
        return {**({"repeat": repeat} if repeat else {}), **({"tools": tools.content} if tools else {})}

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None, repeat: int = 0,
                       tell: OnEvent | None = None) -> Completion:
        """Make one call without streaming. Raises the same errors as `ModelClient.complete`."""
        server, tools = self._server, QUESTION_TOOLS.get()
        with server.session(tools) if server and tools else contextlib.nullcontext() as session:
            token = _session.set(session)
            try:
                return await super().complete(action, max_tokens=max_tokens, deadline=deadline, repeat=repeat)
            except CallError as error:
                if session:
                    error.called = tuple(session.log)
                    error.args = (str(error).replace(session.token, "[key]"),)
                raise
            finally:
                _session.reset(token)

    async def aclose(self) -> None:
        """Close the connection, and the server of the tools."""
        if self._server is not None:
            await self._server.close()
        await super().aclose()

    def _read(self, answer: Response, at: Address, action: Generate,
              way: StreamMode) -> tuple[Reply, Mapping[str, Any]]:
        if len(answer.body) > MAX_REPLY_BYTES:
            raise BadReply(f"it returned more than {MAX_REPLY_BYTES >> 20} MB")
        returned = self._pipeline.read(loads(answer.body, mend=True), parse_fields(action.messages[0].content))
        session = _session.get()
        if session is not None:
            returned = returned.model_copy(update={"called": tuple(session.log)})
        tokens = returned.prompt_tokens, returned.completion_tokens
        price = returned.price if returned.price is not None else self.price_of(*tokens)
        reply = Reply(returned.model_dump_json(exclude_defaults=True),
                      parsed=returned.model_dump(mode="json", exclude_defaults=True), usage=Usage(*tokens, 0, 1, price))
        reply = redact_reply(reply, at.key)
        return redact_reply(reply, session.token) if session else reply, {}


def _open_server() -> ToolServer:
    MissingExtra.check("serve", "uvicorn")
    MissingExtra.check("mcp", "mcp")
    from ragbed.experiments.guests.pipelines.tool_server import ToolServer
    return ToolServer()


def parse_fields(content: str) -> dict[str, Any]:
    """Return the question's fields from the recipe's message."""
    fields: dict[str, Any] = loads(content, mend=True)
    return fields


def _fill(template: Any, fields: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        return {key: _fill(value, fields) for key, value in template.items()}
    if isinstance(template, list):
        return [_fill(value, fields) for value in template]
    if not isinstance(template, str):
        return template
    if (alone := _FIELD.fullmatch(template)) is not None:
        return fields[alone[1]]
    return _FIELD.sub(lambda found: _as_text(fields[found[1]]), template)


def _as_text(value: Any) -> str:
    """Return a field as part of a longer string: one line per option, a blank line between documents."""
    if isinstance(value, str):
        return value
    if all("label" in one for one in value):
        return "\n".join(f"{one['label']}. {one['text']}" for one in value)
    if all("text" in one for one in value):
        return "\n\n".join(f"[{place}] {one['text']}" for place, one in enumerate(value, start=1))
    return "\n".join(f"{one['question']}\n{one['answer']}" for one in value)


def _read_context(value: Any) -> ReadContext:
    if isinstance(value, str):
        return ReadContext(text=value)
    if not isinstance(value, Mapping):
        raise BadReply(f"a context in its reply is {type(value).__name__}, not a string or an object")
    nested = [value[name] for name in ("metadata", "meta") if isinstance(value.get(name), Mapping)]
    fields: Mapping[str, Any] = {**(nested[0] if nested else {}), **value}
    text = next((fields[name] for name in _TEXT if isinstance(fields.get(name), str)), "")
    document = next((str(fields[name]) for name in _DOCUMENT if isinstance(fields.get(name), str | int)), "")
    start, end = (fields.get(name) if type(fields.get(name)) is int and fields[name] >= 0 else None
                  for name in ("start", "end"))
    return ReadContext(text=text, document=document, start=start, end=end)


def _place(cited: Any, names: Sequence[Any]) -> int:
    """Return the position that a citation refers to, from 1; 0 if it is unknown."""
    if isinstance(cited, Mapping):
        cited = next((cited[name] for name in (*_DOCUMENT, "index") if name in cited), None)
    if isinstance(cited, str):
        return names.index(cited) + 1 if cited in names else int(cited) if cited.isdecimal() else 0
    return cited if type(cited) is int and 0 <= cited <= MAX_CONTEXTS else 0
