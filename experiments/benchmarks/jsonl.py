"""Your own questions in JSON Lines, one question per line.

Only `question` is required. Two lines:

    {"question": "How long is the warranty?", "answer": "24 months",
     "gold_documents": [{"document": "terms.pdf", "page": 3}], "tags": {"topic": "warranty"}}
    {"question": "Who insures the warranty?", "answerable": false}

A line with `options` is a multiple-choice question. A line with `sub_questions` and `sub_answers` is a chain. `steps`
are compared with the model's reasoning. With the setting `support`, the answer is checked for the `nuggets`, each with
a `text` and an `importance` (vital or okay). `turns`, each with a `question` and an `answer`, are the earlier turns of
the conversation. `candidates` are passages that may be gold, which only `ragbed review` uses.

The bundled demo set is such a file: 96 questions over small pages, taken from HotpotQA (CC BY-SA 4.0), ClapNQ
(Apache-2.0) and TabFact (MIT). `data/demo/ATTRIBUTION.md` names the source of every page and question. A third are
unanswerable because their gold page was left out.
"""
from __future__ import annotations

import math
import re
from collections.abc import Collection
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import (
    AfterValidator,
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

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row, convert_records, read_rows
from ragbed.documents.types import Format, digest
from ragbed.experiments.benchmarks.base import About, Selection
from ragbed.experiments.benchmarks.fields import find_label, mask_answers, parse_options
from ragbed.experiments.question import ANSWERS, Benchmark, Gold, Question, Scheme, Step
from ragbed.strategies.types import Turn

T = TypeVar("T", str, int, float)
_TYPES = ("str", "int", "float", "list", "dict")


def _filled(value: T) -> T:
    if isinstance(value, str) and not value.strip():
        raise ValueError("text that is not blank")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number")
    return value


_Filled = Annotated[StrictStr, AfterValidator(_filled)]
_Text = Annotated[StrictStr | StrictInt | StrictFloat, AfterValidator(_filled)]


class _ClosedModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _GoldDocument(_ClosedModel):
    document: StrictStr = Field(min_length=1)
    page: StrictInt | None = Field(default=None, ge=1)
    format: Format | None = None
    start: StrictInt | None = Field(default=None, ge=0)
    end: StrictInt | None = Field(default=None, ge=0)
    quotes: tuple[_Filled, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"document": value} if isinstance(value, str) else value


class _Turn(_ClosedModel):
    question: StrictStr
    answer: StrictStr = ""


class _Nugget(_ClosedModel):
    text: _Filled
    importance: Literal["vital", "okay"]


class _OwnQuestion(_ClosedModel):
    question: _Filled
    id: StrictStr | StrictInt | None = None
    answer: _Text | None = None
    answers: list[_Text] = []
    gold_chunks: list[StrictStr] = []
    gold_documents: list[_GoldDocument] = []
    candidates: list[_GoldDocument] = []
    answerable: StrictBool = True
    options: list[StrictStr] | dict[str, StrictStr] = []
    sub_questions: list[_Filled] = []
    sub_answers: list[_Text] = []
    steps: list[_Filled] = []
    nuggets: list[_Nugget] = []
    turns: list[_Turn] = []
    tags: dict[str, StrictStr | list[StrictStr]] = {}


class OwnQuestions(Selection):
    """Your own questions from a JSON Lines file.

    A judge grades the answers. If every question has steps, the judge compares the reasoning with them instead. Options
    and sub-answers add metrics.

    Attributes:
        path: the file.
        corpus: folder of pages to search, unless the retriever names an index.
    """

    about = About(paper="none: your own questions", licence="yours", size="one question per line",
                  get="a JSON Lines file that you write", settings={"conditions": "retrieved"})

    kind: Literal["jsonl"] = "jsonl"
    path: str
    corpus: str | None = None

    def whole(self) -> Benchmark:
        """Return all questions of the file."""
        path = expand_path(self.path)
        return Benchmark(path.stem, read_questions(path), corpus=self.corpus)

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """Return the metrics for the gold that the questions have; options and sub-answers add metrics. The judge's
        rubric is `steps` if every question has reference steps, otherwise `grades`."""
        options, chain = (any(map(attrgetter(name), questions)) for name in ("options", "sub_answers"))
        steps = all(question.steps for question in questions)
        first, *others = ANSWERS.groups
        return Scheme(
            groups=("steps" if steps else first, *["choice"] * options, *["chain"] * chain, *others),
            rubric="steps" if steps else "grades",
            columns=(*(["em / f1"] if steps else ANSWERS.columns), *["accuracy", "unparsed"] * options,
                     *["joint_em / joint_f1", "chain_correct / lucky"] * chain,
                     *["reasoning_score"] * steps, *["gm"] * (steps and options)),
            views=("chain",) * chain)


def read_questions(path: Path) -> tuple[Question, ...]:
    """Return all questions of the file in its order. Raises BenchmarkError if a line is invalid, or if an id, or a
    question without an id, appears twice."""
    seen: dict[str, int] = {}

    def made(row: Row) -> Question:
        question = to_question(row)
        if seen.setdefault(question.id, row.line) != row.line:
            row.fail("id", f"a unique id (line {seen[question.id]} has it too)", question.id)
        return question

    questions = tuple(convert_records(made, read_rows(path)))
    if not questions:
        raise BenchmarkError(f"{path}: contains no questions; write one JSON object per line")
    return questions


def to_question(row: Row) -> Question:
    """Return the question of one line. Fields with null count as left out, as does a blank answer of an unanswerable
    question. Raises BenchmarkError with file, line, field and the expected value."""
    answer = row.fields.get("answer", "left out")
    blank = answer is None or (isinstance(answer, str) and not answer.strip())
    if blank and row.fields.get("answerable") is not False:
        row.fail("answer", 'an answer; if the documents have none, write "answerable": false', answer)
    try:
        own = _OwnQuestion.model_validate({name: value for name, value in row.fields.items()
                                           if value is not None and not (blank and name == "answer")})
    except ValidationError as error:
        _refuse(row, error)
    stated = ([] if own.answer is None else [own.answer]) + own.answers
    answers, options = tuple(dict.fromkeys(map(str, stated))), parse_options(row, own.options)
    if len(own.sub_answers) not in (0, len(own.sub_questions)):
        row.fail("sub_answers", f"{len(own.sub_questions)}, one for each of sub_questions", own.sub_answers)
    sub_answers = tuple(map(str, own.sub_answers))
    gold = [Gold("", chunk=chunk) for chunk in own.gold_chunks]
    gold += [Gold(**item.model_dump()) for item in own.gold_documents]
    return Question(
        id=digest(*(turn.question for turn in own.turns), own.question)[:12] if own.id in (None, "") else str(own.id),
        text=own.question, turns=tuple(Turn(turn.question, turn.answer) for turn in own.turns),
        answers=find_label(row, answers, options) if options else answers, answerable=own.answerable,
        gold=tuple(dict.fromkeys(gold)), options=options, sub_questions=mask_answers(own.sub_questions, sub_answers)[0],
        sub_answers=sub_answers, steps=tuple(map(Step, own.steps)),
        nuggets={one.text: one.importance == "vital" for one in own.nuggets},
        tags={name: (value,) if isinstance(value, str) else tuple(value) for name, value in own.tags.items()})


def _refuse(row: Row, error: ValidationError) -> NoReturn:
    first = error.errors(include_url=False)[0]
    names = [str(part) for part in first["loc"] if str(part).partition("[")[0] not in _TYPES]
    if first["type"] == "extra_forbidden":
        closed: dict[str, type[_ClosedModel]] = {"turns": _Turn, "nuggets": _Nugget}
        inner = closed.get(names[0], _GoldDocument)
        valid = inner.model_fields if len(names) > 1 else _OwnQuestion.model_fields
        row.fail(".".join(names), f"one of the fields {', '.join(valid)}", names[-1])
    if first["type"] == "missing":
        row.fail(".".join(names), "a value", None)
    row.fail(".".join(names), re.sub("^(Input should be |Value error, )", "", first["msg"]), first["input"])


FOLDER = Path(__file__).parent.parent / "data" / "demo"


class Demo(Selection):
    """The bundled demo set."""

    about = About(
        paper="taken from HotpotQA (2018), ClapNQ (2024) and TabFact (2020)",
        licence="CC BY-SA 4.0, Apache-2.0 and MIT, by source", size="96 questions over 220 pages", get="bundled",
        settings={"conditions": "retrieved"})

    kind: Literal["demo"] = "demo"

    def whole(self) -> Benchmark:
        """Return all questions."""
        return load_demo()


def load_demo() -> Benchmark:
    """Load the whole demo set: `corpus` is its folder of pages, and gold names pages by their path in it."""
    return Benchmark("demo", read_questions(FOLDER / "questions.jsonl"), corpus=str(FOLDER / "pages"))
