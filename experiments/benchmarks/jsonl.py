"""The user's own questions: JSON Lines, one question a line.

Only `question` must be there. Two lines:

    {"question": "How long is the warranty?", "answer": "24 months",
     "gold_documents": [{"document": "terms.pdf", "page": 3}], "tags": {"topic": "warranty"}}
    {"question": "Who insures the warranty?", "answerable": false}
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from documents.errors import BenchmarkError
from documents.types import digest
from experiments.benchmarks.about import About
from experiments.benchmarks.material import lettered
from experiments.benchmarks.rows import Row, read_rows
from experiments.benchmarks.selection import Selection
from experiments.question import Benchmark, Gold, Question

_Text = StrictStr | StrictInt | StrictFloat
_TYPES = ("str", "int", "float", "list", "dict", "constrained-str")


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _GoldDocument(_Closed):
    document: StrictStr = Field(min_length=1)
    page: StrictInt | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"document": value} if isinstance(value, str) else value


class _OwnQuestion(_Closed):
    question: StrictStr = Field(min_length=1)
    id: StrictStr | StrictInt | None = None
    answer: _Text | None = None
    answers: list[_Text] = []
    gold_chunks: list[StrictStr] = []
    gold_documents: list[_GoldDocument] = []
    answerable: StrictBool = True
    options: list[StrictStr] | dict[str, StrictStr] = []
    sub_questions: list[StrictStr] = []
    tags: dict[str, StrictStr | list[StrictStr]] = {}


class OwnQuestions(Selection):
    """Own questions from a JSON Lines file.

    Attributes:
        path: the file.
        corpus: folder of the pages that they are asked over, if not an index is named instead.
    """

    about = About(paper="none: your own questions", licence="yours", size="one line a question",
                  get="a JSON Lines file that you write", settings={"conditions": "retrieved"})

    kind: Literal["jsonl"] = "jsonl"
    path: str
    corpus: str | None = None

    def load(self) -> Benchmark:
        """The chosen questions.

        Raises:
            BenchmarkError: the file cannot be read, or a line does not fit.
        """
        path = Path(self.path).expanduser()
        return self.select(Benchmark(path.stem, read_questions(path), corpus=self.corpus))


def read_questions(path: Path) -> tuple[Question, ...]:
    """All questions of the file, in its order.

    Raises:
        BenchmarkError: a line does not fit, or an id or a question without one stands there twice.
    """
    seen: dict[str, int] = {}
    questions = []
    for row in read_rows(path):
        question = to_question(row)
        if question.id in seen:
            row.fail("id", f"an id of its own (line {seen[question.id]} has it too)", question.id)
        seen[question.id] = row.line
        questions.append(question)
    if not questions:
        raise BenchmarkError(f"{path}: no question in it")
    return tuple(questions)


def to_question(row: Row) -> Question:
    """The question of one line.

    Raises:
        BenchmarkError: the line does not fit: file, line, field, expected.
    """
    try:
        own = _OwnQuestion.model_validate(dict(row.fields))
    except ValidationError as error:
        _refuse(row, error)
    if "answer" in row.fields and not str(own.answer or "").strip() and own.answer != 0:
        row.fail("answer", 'an answer; where the documents hold none, write "answerable": false instead', own.answer)
    stated = ([] if own.answer is None else [own.answer]) + own.answers
    answers = tuple(dict.fromkeys(str(answer) for answer in stated))
    gold = [Gold("", chunk=chunk) for chunk in own.gold_chunks]
    gold += [Gold(item.document, page=item.page) for item in own.gold_documents]
    return Question(
        id=digest(own.question)[:12] if own.id in (None, "") else str(own.id), text=own.question, answers=answers,
        answerable=own.answerable, gold=tuple(dict.fromkeys(gold)), options=_options(own.options),
        sub_questions=tuple(own.sub_questions),
        tags={name: (value,) if isinstance(value, str) else tuple(value) for name, value in own.tags.items()})


def _options(options: list[str] | dict[str, str]) -> tuple[tuple[str, str], ...]:
    if isinstance(options, dict):
        return tuple(options.items())
    return lettered(options)


def _refuse(row: Row, error: ValidationError) -> NoReturn:
    """The first complaint as one line; an unknown key names the valid ones."""
    first = error.errors(include_url=False)[0]
    names = [str(part) for part in first["loc"] if str(part).partition("[")[0] not in _TYPES]
    if first["type"] == "extra_forbidden":
        valid = _GoldDocument.model_fields if len(names) > 1 else _OwnQuestion.model_fields
        row.fail(".".join(names), f"one of the fields {', '.join(valid)}", names[-1])
    if first["type"] == "missing":
        row.fail(".".join(names), "it to be there", None)
    row.fail(".".join(names), first["msg"].removeprefix("Input should be "), first["input"])
