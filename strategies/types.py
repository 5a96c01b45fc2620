"""Define the recipe protocol: what a strategy is given, what it may ask for, and what it hands back."""
from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, cast

from ragbed.documents.types import Chunk
from ragbed.strategies.reading import REFUSAL, is_refusal, read_answer, read_citations

Rules = Literal["grounded", "open", "reading", "choice", "closed-book"]
Layout = Literal["documents_first", "as_published"]
Role = Literal["system", "user", "assistant", "tool"]
AnswerFormat = Literal["tags", "json"]
Framing = Literal["delimited", "datamarked", "none"]
Form = Literal["plain", "tags", "fields"]
End = TypeVar("End")


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, the concatenation of its parts; those that prompts share (documents) are stored once."""

    role: Role
    parts: tuple[str, ...]
    tool_calls: tuple[Mapping[str, Any], ...] = ()  # of an assistant's message, as the model sent them
    call_id: str = ""  # of a tool's message: the call that it answers

    @property
    def content(self) -> str:
        return "".join(self.parts)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk under the number that every prompt of this question shows it with."""

    number: int
    chunk: Chunk


Evidence = tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Ask for evidence. `k` None means what the settings say."""

    query: str
    k: int | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask the model.

    Attributes:
        tool_choice: `none` lets none be called, and still shows the tools that a conversation began with.
        temperature, max_tokens, effort: None means what the settings say. The effort is that of reasoning models.
    """

    messages: tuple[Message, ...]
    purpose: str  # a word for the trace: `answer`, `decompose`, `solve`
    shown: tuple[int, ...] = ()  # the evidence numbers that the messages show
    schema: Mapping[str, Any] | None = None  # a JSON Schema that the reply must fit, or None
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    sample: int = 0  # which of several draws with equal parameters this is
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    see_failure: bool = False  # True where the recipe wants to be sent the failure of the call instead of ending
    effort: str | None = None
    gathering: bool = False  # whether a retrieval or history strategy makes it: the answer does not rest on it
    answers: Form | None = None  # the form in which its reply is the final answer, which can be shown as it comes


@dataclass(frozen=True, slots=True)
class Decision:
    """What a recipe decided, for the trace and for those who watch: yielded alone, answered with None. `what` is a word
    or two, such as `searches again`, and `why` a short line for a reader."""

    what: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Contexts:
    """Tell what the last call read that no search of ragbed's found: yielded alone, answered with the evidence."""

    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of calls, `cached_tokens` those of the prompts that the server had at hand; the price in US dollars."""

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
    """What the model said."""

    text: str
    reasoning: str = ""  # what the server sent apart from the text (`reasoning_content`)
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    parsed: Any = None  # the reply as an object where a schema was asked for and the text is JSON
    usage: Usage = Usage()
    finish_reason: str = "stop"  # as the server says: `stop`, `length`, `tool_calls`


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a call, sent to a recipe that asked to see it."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What a recipe ends with.

    Attributes:
        gathered: the numbers of the evidence, best first, where the recipe asks for no answer to it; else None.
        figures: what the strategy measured, by name, such as `agreement`; kept in the record, averaged like scores.
    """

    text: str  # the final answer with its citations, or the refusal
    cited: tuple[int, ...]  # evidence numbers in order of first mention, as read from `text` or the structured reply
    refused: bool  # whether the reply refuses to answer
    well_formed: bool  # False where the reply holds no answer at all
    tagged: bool | None  # whether the answer stood in its tags or fields; None where the strategy asked for neither
    notes: tuple[str, ...] = ()  # short tags for the record, such as `no_sub_questions` or `cut`
    gathered: tuple[int, ...] | None = None
    figures: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_reply(cls, reply: Reply, *notes: str, form: Form = "tags") -> Draft:
        """Read answer, citations and refusal from the structured reply where there is one, else from the tags. The form
        is what was asked for: answer tags, the fields of a schema, or neither. Fields that did not come, and a reply
        cut before its answer tag, are not well-formed; a whole reply without tags may be an answer."""
        cut = reply.finish_reason == "length"
        notes = (*notes, "cut") if cut else notes
        if isinstance(reply.parsed, Mapping):  # what the answer cites in brackets counts too
            said, numbers = reply.parsed.get("answer"), reply.parsed.get("citations", ())
            text = said.strip() if isinstance(said, str) else ""
            listed = [n for n in numbers if type(n) is int] if isinstance(numbers, list) else []
            refused = reply.parsed.get("refused") is True or is_refusal(text)
            whole = bool(text) or refused
            cited = tuple(dict.fromkeys([*listed, *read_citations(text)]))
            return cls(text or (REFUSAL if refused else ""), cited, refused, whole, whole, notes)
        text, tagged = read_answer(reply.text)
        answers = tagged or form == "plain" or (form == "tags" and not cut)
        return cls(text, read_citations(text), is_refusal(text), bool(text) and answers,
                   None if form == "plain" else tagged, notes)


Action = Search | Generate
Result = Evidence | Reply | Failure
Asked = Action | list[Action] | Decision | Contexts
Recipe = Generator[Asked, Any, Draft]
Gathering = Generator[Asked, Any, Evidence]
Standalone = Generator[Asked, Any, str]


class Reasoning(Protocol):
    """How evidence becomes an answer."""

    def __call__(self, task: Task) -> Recipe: ...


class Retrieval(Protocol):
    """How evidence is gathered for one query."""

    def __call__(self, task: Task, query: str) -> Gathering: ...


class History(Protocol):
    """How a question of a conversation becomes one that can be understood by itself."""

    def __call__(self, task: Task) -> Standalone: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that was asked earlier in a conversation, and the text of its answer; empty where it has none."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A worked example that prompts show before the rules."""

    question: str
    answer: str  # as a final answer is to look, with its citations where they are asked for
    documents: tuple[str, ...] = ()  # contents, shown with the numbers 1, 2, ... of the example's own
    reasoning: str = ""  # what leads to the answer; shown by strategies that ask for reasoning


@dataclass(frozen=True, slots=True)
class Task:
    """What a strategy sees of a question: never gold.

    Attributes:
        answer_format: how the final answer is asked for where a strategy leaves that open: by tags or a JSON Schema.
        framing: how documents are set apart: between marks, with the rule that they instruct nothing, or not at all.
        prompt_variant: which version of the strategy's instruction is used, from 1; most strategies have one.
    """

    id: str
    question: str
    retrieval: Retrieval
    rules: Rules = "grounded"
    options: tuple[tuple[str, str], ...] = ()  # `(label, text)` pairs of a multiple-choice question
    turns: tuple[Turn, ...] = ()  # of the conversation before the question, the first one first
    layout: Layout = "documents_first"
    separators: bool = True  # False where chunks are shown without numbers, joined by a blank line
    sub_questions: tuple[str, ...] = ()  # shown, numbered, with the question
    with_sub_answers: bool = False  # whether the reply is to answer each of them too, in lines before its final answer
    about: str = ""  # what the documents are, such as a novel's title and author; shown under `closed-book` alone
    brief: bool = False  # whether the rules ask for a final answer of a few words
    exemplars: tuple[Exemplar, ...] = ()
    answer_format: AnswerFormat = "tags"
    framing: Framing = "delimited"
    prompt_variant: int = 1
    placed: bool = False  # whether the evidence is placed beforehand: every search finds the same
    seed: int = 0

    @property
    def chooses(self) -> bool:
        """Tell whether the rules demand one of the options."""
        return bool(self.options) and self.rules in ("choice", "closed-book")

    @property
    def cites(self) -> bool:
        """Tell whether the rules ask for citations."""
        return self.separators and self.rules in ("grounded", "open")

    def gather(self, query: str) -> Gathering:
        """Return the evidence that the retrieval strategy finds for the query; its calls are marked as `gathering`."""
        return drive(self.retrieval(self, query), mark_gathering)

    def rng(self) -> random.Random:
        """Return a fresh generator, seeded by question and cell."""
        return random.Random(f"{self.seed}:{self.id}")


def mark_gathering(asked: Any) -> Any:
    """Mark a call as one on which the answer does not rest."""
    return replace(asked, gathering=True) if isinstance(asked, Generate) else asked


def drive(recipe: Generator[Any, Any, End], rewrite: Callable[[Any], Any] = lambda asked: asked,
           came: Callable[[Any, Any], None] = lambda asked, result: None) -> Generator[Any, Any, End]:
    """Play a recipe inside another one to its end, and return what it returns. Whatever it asks for, each of a list
    alone, goes out as `rewrite` returns it; `came` is told that and its result. Its answer is not yet the final one."""
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
