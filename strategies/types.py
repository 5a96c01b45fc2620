"""Define the recipe protocol: what a strategy receives, requests and returns."""
from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, cast, get_args

from ragbed.documents.types import Chunk
from ragbed.guests import entries, load
from ragbed.strategies.reading import REFUSAL, Language, is_refusal, read_answer, read_citations, refusal_notes

Family = Literal["reasoning", "retrieval", "history"]
FAMILIES: tuple[Family, ...] = get_args(Family)
Rules = Literal["grounded", "open", "reading", "choice", "closed-book"]
Layout = Literal["documents_first", "as_published"]
Role = Literal["system", "user", "assistant", "tool"]
AnswerFormat = Literal["tags", "json"]
Framing = Literal["delimited", "datamarked", "none"]
Form = Literal["plain", "tags", "fields"]
End = TypeVar("End")


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message: its parts, joined. Parts that several prompts share, such as the documents, are stored once."""

    role: Role
    parts: tuple[str, ...]
    tool_calls: tuple[Mapping[str, Any], ...] = ()  # tool calls of an assistant message, as the model sent them
    call_id: str = ""  # in a tool message, the id of the call that it answers

    @property
    def content(self) -> str:
        return "".join(self.parts)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its number. Every prompt of a question shows a chunk under the same number."""

    number: int
    chunk: Chunk
    header: str = ""  # where the chunk is from, if prompts show it


Evidence = tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Search for evidence. `k` is the number of chunks; None uses the retriever's setting."""

    query: str
    k: int | None = None


class Tools(tuple[Any, ...]):
    """The tools of a strategy, as in settings: annotate a parameter with this type, as in `tools: Tools`. The strategy
    finds their specifications in `Task.tools`."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Describe a tool to a strategy and a model. `parameters` is the JSON Schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Call a tool. Its result is a `ToolResult`. The tool checks the arguments, which a model may have written."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returned.

    Attributes:
        parts: texts and numbered passages in reading order.
        failure: why the tool failed or refused. Its message is for the model; the question continues.
    """

    parts: tuple[str | Passage, ...]
    failure: Failure | None = None

    @property
    def text(self) -> str:
        """Return the parts as text, each passage after a line with its number, or the message of the failure."""
        if self.failure is not None:
            return self.failure.message
        return "\n".join(part if isinstance(part, str) else f"[{part.number}]\n{part.chunk.content}"
                         for part in self.parts)

    @property
    def passages(self) -> Evidence:
        return tuple(part for part in self.parts if isinstance(part, Passage))


@dataclass(frozen=True, slots=True)
class Generate:
    """Call the model.

    Attributes:
        tool_choice: `none` forbids calls but keeps the tools in the prompt, so that its beginning stays the same.
        temperature, max_tokens, effort: None uses the run's settings. `effort` is for reasoning models.
    """

    messages: tuple[Message, ...]
    purpose: str  # one word for the trace: `answer`, `decompose`, `solve`
    shown: tuple[int, ...] = ()  # the evidence numbers that the messages show
    schema: Mapping[str, Any] | None = None  # a JSON Schema that the reply must fit, or None
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    sample: int = 0  # number of this sample among several with equal parameters
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    see_failure: bool = False  # send a failure of the call to the recipe instead of ending the question
    effort: str | None = None
    gathering: bool = False  # whether a retrieval or history strategy made the call
    counted: bool = True  # whether the server's token count covers only the messages
    answers: Form | None = None  # form of the final answer, if the reply is one and can be streamed


@dataclass(frozen=True, slots=True)
class Decision:
    """Record what a recipe decided, for the trace and for streaming. Yield it alone; its result is None.

    Attributes:
        what: one or two words, such as `searches again`.
        why: a short line for a reader.
    """

    what: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Contexts:
    """Report chunks that the last call used but ragbed did not find itself. Yield it alone; its result is the evidence.
    """

    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and price, in US dollars, of model calls. `cached_tokens` are prompt tokens that the server had cached."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    calls: int = 0
    price: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Sum the tokens of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        price = None if self.price is None or other.price is None else self.price + other.price
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens,
                     self.cached_tokens + other.cached_tokens, self.calls + other.calls, price)


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply."""

    text: str
    reasoning: str = ""  # sent separately from the text (`reasoning_content`)
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    parsed: Any = None  # the reply as an object, if a schema was requested and the text is JSON
    usage: Usage = Usage()
    finish_reason: str = "stop"  # as the server reports it: `stop`, `length`, `tool_calls`
    unsent: tuple[str, ...] = ()  # the served model, and the parameters that its server refused and that were not sent


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, sent to a recipe that set `see_failure`, or the failure of a tool."""

    kind: str
    message: str

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Failure:
        """Return the failure of these fields; one with `called` is that of a pipeline."""
        return PipelineFailure(**fields) if "called" in fields else Failure(**fields)


@dataclass(frozen=True, slots=True)
class PipelineFailure(Failure):
    """A failed pipeline, with the calls of ragbed's tools that it made before: each tool and its arguments."""

    called: Sequence[tuple[str, Mapping[str, Any]]] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """The result of a recipe.

    Attributes:
        failure: ends the question as failed, whatever the other fields say.
        gathered: evidence numbers, best first, of a recipe that only searches; None for every other recipe.
        figures: values that the strategy measured, such as `agreement`; stored in the record and averaged like scores.
    """

    text: str  # the final answer with its citations, or the refusal
    cited: tuple[int, ...]  # evidence numbers in order of first mention, as read from `text` or the structured reply
    refused: bool  # whether the reply refuses to answer
    well_formed: bool  # False if the reply contains no answer
    tagged: bool | None  # whether the answer was in the requested tags or fields; None if none were requested
    notes: tuple[str, ...] = ()  # short tags for the record, such as `no_sub_questions` or `cut`
    gathered: tuple[int, ...] | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None

    @classmethod
    def from_reply(cls, reply: Reply, *notes: str, form: Form = "tags") -> Draft:
        """Read answer, citations and refusal from a structured reply or, without one, from its tags.

        `form` is the form that was asked for. A reply without the required fields, or cut off before its answer tag, is
        not well-formed. A complete reply without tags may be an answer.
        """
        cut = reply.finish_reason == "length"
        notes = (*notes, "cut") if cut else notes
        if isinstance(reply.parsed, Mapping):  # citations in brackets in the answer count too
            said = reply.parsed.get("answer")
            text = said.strip() if isinstance(said, str) else ""
            listed, unread = _field_citations(reply.parsed.get("citations"))
            field_refuses = str(reply.parsed.get("refused")).strip().lower() in ("true", "yes")
            refused = field_refuses or is_refusal(text)
            whole = bool(text) or refused
            cited = tuple(dict.fromkeys([*listed, *read_citations(text)]))
            notes = (*notes, *["unread_citations"] * unread, *(() if field_refuses else refusal_notes(text)))
            return cls(text or (REFUSAL if refused else ""), cited, refused, whole, whole, notes)
        text, tagged = read_answer(reply.text)
        answers = tagged or form == "plain" or (form == "tags" and not cut)
        return cls(text, read_citations(text), is_refusal(text), bool(text) and answers,
                   None if form == "plain" else tagged, (*notes, *refusal_notes(text)))


_NUMBER_KEYS = ("number", "id", "document", "source", "citation", "index")


def _field_citations(said: Any) -> tuple[list[int], bool]:
    """Return the numbers in the field `citations`, and whether any entry is not a number. Models write `1.0`,
    `"[1]"`, `"Document 1"` and `{"document": 1}` too, alone or in a list."""
    numbers, unread = [], False
    for one in said if isinstance(said, list) else [said]:
        if isinstance(one, Mapping):
            one = next((one[key] for key in _NUMBER_KEYS if key in one), one)
        if type(one) is int or (isinstance(one, float) and one.is_integer()):
            numbers.append(int(one))
        elif isinstance(one, str):
            found = read_citations(one) or read_citations(f"[{one.strip()}]")
            numbers += found
            unread = unread or bool(one.strip() and not found)
        else:
            unread = unread or one is not None
    return numbers, unread


Action = Search | Generate | ToolCall
Result = Evidence | Reply | Failure | ToolResult
Asked = Action | list[Action] | Decision | Contexts
Recipe = Generator[Asked, Any, Draft]
Gathering = Generator[Asked, Any, Evidence]
Standalone = Generator[Asked, Any, str]


class Reasoning(Protocol):
    """A strategy that turns evidence into an answer."""

    def __call__(self, task: Task) -> Recipe: ...


class Retrieval(Protocol):
    """A strategy that gathers evidence for one query."""

    def __call__(self, task: Task, query: str) -> Gathering: ...


class History(Protocol):
    """A strategy that rewrites a follow-up question so that it stands alone."""

    def __call__(self, task: Task) -> Standalone: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation and its answer, which is empty if there was none."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A worked example that prompts show before the rules."""

    question: str
    answer: str  # in the form of a final answer, with citations if the rules ask for them
    documents: tuple[str, ...] = ()  # contents, numbered 1, 2, ... within the example
    reasoning: str = ""  # only strategies that ask for reasoning show it


@dataclass(frozen=True, slots=True)
class Task:
    """A question as a strategy sees it, without gold labels.

    Attributes:
        answer_format: form of the final answer if the strategy leaves it open: tags or a JSON Schema.
        framing: how prompts separate documents from instructions: by marks and a rule that documents contain no
            instructions, or not at all.
        language: of the sentence that refuses: English, or with `auto` the question's.
        prompt_variant: version of the strategy's instruction, from 1. Most strategies have one version.
    """

    id: str
    question: str
    retrieval: Retrieval
    rules: Rules = "grounded"
    options: tuple[tuple[str, str], ...] = ()  # `(label, text)` pairs of a multiple-choice question
    turns: tuple[Turn, ...] = ()  # earlier turns of the conversation, oldest first
    layout: Layout = "documents_first"
    separators: bool = True  # False: chunks are shown without numbers, separated by a blank line
    sub_questions: tuple[str, ...] = ()  # shown, numbered, with the question
    with_sub_answers: bool = False  # whether the reply answers them too, in lines before its final answer
    about: str = ""  # what the documents are, such as a novel's title and author; shown only under `closed-book`
    brief: bool = False  # whether the rules ask for a final answer of a few words
    exemplars: tuple[Exemplar, ...] = ()
    answer_format: AnswerFormat = "tags"
    framing: Framing = "delimited"
    language: Language = "english"
    prompt_variant: int = 1
    placed: bool = False  # whether the evidence is fixed beforehand, so that every search finds the same
    seed: int = 0
    tools: tuple[ToolSpec, ...] = ()  # tools that the strategy may call

    @property
    def chooses(self) -> bool:
        """Return whether the answer must be one of the options."""
        return bool(self.options) and self.rules in ("choice", "closed-book")

    @property
    def cites(self) -> bool:
        """Return whether the rules ask for citations."""
        return self.separators and self.rules in ("grounded", "open")

    @property
    def refusal(self) -> str:
        """Return the refusal sentence for the question."""
        return str(load(entries("refusal")["sentence"])(self.question)) if self.language == "auto" else REFUSAL

    def gather(self, query: str) -> Gathering:
        """Gather evidence for a query with the retrieval strategy, and mark its calls as `gathering`."""
        return drive(self.retrieval(self, query), mark_gathering)

    def rng(self) -> random.Random:
        """Return a new random generator, seeded by question and cell."""
        return random.Random(f"{self.seed}:{self.id}")


def mark_gathering(asked: Any) -> Any:
    """Mark a model call as `gathering`; return any other action unchanged."""
    return replace(asked, gathering=True) if isinstance(asked, Generate) else asked


def drive(recipe: Generator[Any, Any, End], rewrite: Callable[[Any], Any] = lambda asked: asked,
           came: Callable[[Any, Any], None] = lambda asked, result: None) -> Generator[Any, Any, End]:
    """Play a recipe inside another recipe, and return its result.

    Args:
        rewrite: changes each action before it is performed.
        came: called with each action and its result.
    """
    def inner(asked: Any) -> Any:
        asked = replace(asked, answers=None) if isinstance(asked, Generate) and asked.answers else asked
        return rewrite(asked)

    with contextlib.closing(recipe):
        result: Any = None
        while True:
            try:
                asked = recipe.send(result)
            except StopIteration as end:
                return cast(End, end.value)
            sent = [*map(inner, asked)] if isinstance(asked, list) else inner(asked)
            result = yield sent
            came(sent, result)
