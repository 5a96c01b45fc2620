"""DetectiveQA: multiple choice over whole detective novels, with the reasoning that leads to each answer.

Paper: Xu, Ye, Zhang, Liu, Liu, Yang, Guo, Qiu, "DetectiveQA: Evaluating Long-Context Reasoning on Detective Novels",
arXiv:2409.02465. Data: `Phospheneser/DetectiveQA` on the Hugging Face hub, Apache 2.0 by its page; the novels belong to
their authors. The data is not included in this project. Annotations are in files such as
`anno_data_en/human_anno/117.json`, the text of the novel in `novel_data_en/117-Title-Author.txt`, one paragraph per
line: `[740] She had left her luggage.`

One invented record. `clue_position` may be called `evidence_position`; -1 marks a step that is inferred:

    {"novel_id": 7, "num_paragraphs": 12, "time_cost": 40, "questions": [
      {"question": "Who moved the lamp?", "options": {"A": "Ida", "B": "Otto", "C": "Nell", "D": "Nobody"},
       "answer": "B", "reasoning": ["There was oil on Otto's sleeve.", "So Otto had held the lamp."],
       "clue_position": [4, -1], "answer_position": 11, "distraction": {"A": "Ida was seen near it."}}]}

`distraction` was for the annotators and is ignored.

MemoryAgentBench (Hu, Wang, McAuley, arXiv:2507.05257) has ten of the novels, with 71 questions, on the hub as
`ai-hyz/MemoryAgentBench`, `data/Long_Range_Understanding-*.parquet`. Its rows are read too, if their source is
`detective_qa`. They have no clues, steps or paragraph numbers. The options are part of the question, and an answer may
be a letter, an option, or JSON with the field `answer`. One invented row:

    {"context": "Ida lit the lamp.\nThere was oil on Otto's sleeve.",
     "questions": ["Who moved the lamp?\nA. Ida\nB. Otto\nC. Nell\nD. Nobody"], "answers": [["B. Otto"]],
     "metadata": {"source": "detective_qa", "qa_pair_ids": ["detective_qa_0"]}}
"""
from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.rows import Row, convert_records, read_csv, read_json, read_rows, read_text, skip_bad_records
from ragbed.documents.types import Chunk, Document, digest
from ragbed.experiments.benchmarks.base import About, Loaded, Selection, collect_questions, files_below, files_in
from ragbed.experiments.benchmarks.fields import (
    Options,
    choices,
    find_letter,
    gold_chunk,
    letter_options,
    make_tags,
)
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.question import Benchmark, Gold, Question, Scheme, Step
from ragbed.strategies.choice import read_choice

_INFERRED = -1
_NOVELS = ("*.txt", "*.csv")  # all .json files, such as titles.json, are fetched anyway
TITLES = ("titles.json", "titles.csv")
_BRACKETED = re.compile(r"\s*\[(\d{1,9})\]\s*")
_PLAIN = re.compile(r"\s*(\d{1,9})(?:[.:、)]\s*|\s+)")
_LANGUAGE = re.compile(r"(?<![a-z])(en|english|zh|cn|chinese)(?![a-z])", re.IGNORECASE)
_SOURCE = "detective_qa"  # its name in MemoryAgentBench
_EMPTY = Row(Path(), 0, {})
_OPTION = re.compile(r"""(?<!\w)["'(]?([A-Z])["']?\s?[.):：、](?!\w\.)\s*["']?""")
_OPTION_LINE = re.compile(rf"^[ \t]{{0,20}}{_OPTION.pattern}", re.MULTILINE)
_LABEL = re.compile(r"(?:\b(?:options|choices))?[\s:{(\[]{0,20}$", re.IGNORECASE)
_STATED = re.compile(r"""["']answer["']\s*:\s*["']([^"']+)""")
_CJK = re.compile(r"[\u3400-\u9fff]")


class DetectiveQa(Selection):
    """DetectiveQA from local files or the hub.

    Attributes:
        path: a folder of annotations and novels, a file of annotations, or `hub:OWNER/NAME`.
        novels: the folder of the novels' text files, if they are elsewhere. A `titles.json` or `titles.csv` in it gives
            title and author if the file names do not.
    """

    about = About(
        paper="DetectiveQA: Evaluating Long-Context Reasoning on Detective Novels (2024), "
              "https://arxiv.org/abs/2409.02465",
        licence="Apache 2.0 by the dataset's page; the novels belong to their authors",
        size="1,200 questions over novels of 100,000 words and more, in English and in Chinese",
        get="hub:Phospheneser/DetectiveQA, a folder of its annotations and novels, or hub:ai-hyz/MemoryAgentBench",
        settings={"rules": "choice", "conditions": ["full", "closed-book", "gold"],
                  "reasoning": "chain_of_thought"})
    scheme = Scheme(
        groups=("choice", "steps", "ranking", "form"), rubric="steps", columns=("accuracy", "reasoning_score", "gm"),
        views=("wins", "depth", "by:language", "by:annotation"), published=("detectiveqa_6", "detectiveqa_8"))

    kind: Literal["detectiveqa"] = "detectiveqa"
    path: str = "hub:Phospheneser/DetectiveQA"
    novels: str | None = None

    @classmethod
    def run_as(cls, fields: Mapping[str, Any], run: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any]:
        """Return the paper's settings. Rows of MemoryAgentBench have no clues to show, and no title."""
        named = re.search(r"MemoryAgentBench|Long_Range_Understanding", str(fields.get("path", "")), re.IGNORECASE)
        return {**cls.about.settings, **({"conditions": "full"} if named else {})}

    def load(self) -> Benchmark:
        """Load the selected questions, and only their novels."""
        path = fetch_files(self.path, also=_NOVELS)
        with skip_bad_records(self.skip_bad) as skipped:
            if rows := _memory_rows(path):
                loaded = collect_questions(chain.from_iterable(convert_records(_memory_questions, rows)))
                return self.select(replace(Benchmark("detectiveqa", *loaded), skipped=tuple(skipped)))
            shelf = Shelf(fetch_files(self.novels, also=_NOVELS) if self.novels else
                          path if path.is_dir() else path.parent)
            records = {question.id: (question, row) for question, row in _records(path)}
            chosen = self.select(Benchmark("detectiveqa", tuple(question for question, _ in records.values())))
            questions, documents = collect_questions(convert_records(
                lambda question: _add_novel(*records[question.id], shelf.novel(
                    question.tags["novel"][0], question.tags["language"][0])), chosen.questions))
        return replace(chosen, questions=questions, documents=documents, skipped=tuple(skipped))


def _records(path: Path) -> Iterator[tuple[Question, Row]]:
    """Yield the questions without their novels, numbered per novel and kind of annotation."""
    seen: Counter[str] = Counter()

    def parts(row: Row) -> list[tuple[str, str, Row]]:
        annotation = row.optional("annotation") or _annotation(row.file)
        return [(row.id("novel_id"), annotation, part) for part in row.parts("questions")]

    def made(one: tuple[str, str, Row]) -> tuple[Question, Row]:
        novel, annotation, part = one
        question = _question(part)
        place = part.file.relative_to(path).as_posix() if path.is_dir() else part.file.as_posix()
        language = language_named(place) or language_of(question.text)
        id = f"{language}-{novel}-{annotation}"
        seen[id] += 1
        tags = make_tags(novel=novel, language=language, annotation=annotation)
        return replace(question, id=f"{id}-{seen[id]}", tags={**tags, **question.tags}), part

    files = (file for file in files_below(path, (".json", ".jsonl")) if file.name not in TITLES)
    rows = chain.from_iterable(map(read_rows, files))
    return convert_records(made, chain.from_iterable(convert_records(parts, rows)))


def _memory_rows(path: Path) -> list[tuple[int, Row]]:
    """Return MemoryAgentBench's rows of this benchmark, numbered; none if the files have another format."""
    files = [path] if path.is_file() else files_in(path, (".parquet", ".jsonl", ".json"))
    rows = (row for file in files if file.name not in TITLES and "context" in next(read_rows(file), _EMPTY).fields
            for row in read_rows(file))
    return list(enumerate((row for row in rows if row.part("metadata", row.fields.get("metadata")).fields.get(
        "source") == _SOURCE), start=1))


def _memory_questions(numbered: tuple[int, Row]) -> list[Loaded]:
    """Return the questions of one row, over the lines of its context."""
    novel, row = numbered
    lines = enumerate(row.filled("context").split("\n"), start=1)
    text = Novel(f"{_SOURCE}-{novel}", ((number, line.strip()) for number, line in lines), "")
    pool, whole = text.before(text.last + 1)
    asked, answers = row.filled_texts("questions"), row.fields.get("answers")
    if not isinstance(answers, list) or len(answers) != len(asked):
        row.fail("answers", f"one for each of the {len(asked)} questions", answers)
    found: list[Loaded] = []
    for place, (question, answer) in enumerate(zip(asked, answers, strict=True), start=1):
        forms = [str(one) for one in (answer if isinstance(answer, list) else [answer])]
        stem, options = _split_options(question)
        letters = {letter for form in forms if (letter := read_choice(
            stated[1] if (stated := _STATED.search(form)) else form, options))}
        if len(letters) != 1:
            row.fail(f"questions[{place - 1}]", "options A, B, C and so on, and an answer that names one",
                     f"{question[-80:]} {forms}")
        found.append((Question(
            id=f"{_SOURCE}-{novel}-{place}", text=stem, answers=tuple(letters), answerable=True, options=options,
            pool=pool, whole=(whole,), tags=make_tags(novel=str(novel), language=language_of(stem))), [text.document]))
    return found


def _split_options(text: str) -> tuple[str, Options]:
    """Return the question without its options, and the options: at the starts of lines or else within them. Text after
    the line of the last option is dropped."""
    for pattern in (_OPTION_LINE, _OPTION):
        marks: list[re.Match[str]] = []
        for mark in pattern.finditer(text):
            if mark[1] == "A" and len(marks) < 2:  # an earlier A was an initial
                marks = [mark]
            elif mark[1] == chr(ord("A") + len(marks)):
                marks.append(mark)
        if len(marks) > 1:
            ends = [*(mark.start() for mark in marks[1:]), len(text)]
            texts = [text[mark.end():end].strip() for mark, end in zip(marks, ends, strict=True)]
            stem = _LABEL.sub("", text[:marks[0].start()]).strip()
            return stem, letter_options(one.split("\n")[0].strip(" \t\r,;}\"'") for one in texts)
    return text, ()


def _question(row: Row) -> Question:
    """Return the question of one annotation, without its novel and id. Its tag `clues` is `late` if a clue comes after
    the place where the context is cut."""
    options = choices(row, "options")
    late = max(_positions(row), default=_INFERRED) >= row.number("answer_position")
    return Question(id="", text=row.filled("question").strip(), answers=(find_letter(row, options),), answerable=True,
                    options=options, steps=tuple(map(Step, row.filled_texts("reasoning"))),
                    tags=make_tags(clues="late" if late else "before"))


def _add_novel(question: Question, row: Row, novel: Novel) -> Loaded:
    """Return the question with its novel up to the answer, both whole and split into paragraphs."""
    answered, positions, steps = row.number("answer_position"), _positions(row), question.steps
    pool, whole = novel.before(answered)
    if not pool or answered > novel.last + 1:
        row.fail("answer_position", f"a paragraph of {novel.document.source}, after its first and up to {novel.last}",
                 answered)
    length = len(whole.content)
    if len(steps) == len(positions):
        starts = [novel.paragraphs[place].start if place in novel.paragraphs else length for place in positions]
        steps = tuple(replace(step, depth=start / length if start < length else None)
                      for step, start in zip(steps, starts, strict=True))
    clues = dict.fromkeys(position for position in positions if position != _INFERRED)
    gold = tuple(gold_chunk(novel.paragraphs[position]) if position in novel.paragraphs
                 else Gold(f"{novel.document.id}#{position}") for position in clues)  # gold that no search finds
    return replace(question, pool=pool, whole=(whole,), gold=gold, steps=steps, about=novel.about), [novel.document]


def _positions(row: Row) -> list[int]:
    field = "clue_position" if "clue_position" in row.fields else "evidence_position"
    positions = row.fields.get(field)
    if not isinstance(positions, list) or not all(type(position) is int for position in positions):
        row.fail("clue_position", "a list of paragraph numbers, -1 for an inference", positions)
    return positions


def _annotation(file: Path) -> str:
    names = [name for name in (file.parent.name, file.stem) if "anno" in name.lower() and language_named(name) is None]
    return names[0] if names else "annotation"


class Novel:
    """A novel without its paragraph numbers, one paragraph per line.

    Attributes:
        paragraphs: the paragraphs by number, without blank ones.
        last: the number of the last paragraph.
        title, author: empty if they are unknown.
    """

    def __init__(self, name: str, paragraphs: Iterable[tuple[int, str]], about: str) -> None:
        numbers, texts = zip(*paragraphs, strict=True)
        self.document = Document(digest("novel", name, *texts)[:16], name, Path(name).stem, "", "\n".join(texts))
        self.about, self.paragraphs, at = about, dict[int, Chunk](), 0
        for number, text in zip(numbers, texts, strict=True):
            if text:
                self.paragraphs[number] = Chunk.of(self.document, "plain", at, at + len(text))
            at += len(text) + 1
        self.last = max(self.paragraphs)
        self.before = cache(self._before)

    def _before(self, number: int) -> tuple[tuple[Chunk, ...], Chunk]:
        shown = tuple(chunk for at, chunk in self.paragraphs.items() if at < number)
        return shown, Chunk.of(self.document, "plain", 0, shown[-1].end if shown else 0)


class Shelf:
    """The novels in a folder. Each is read only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, list[Path]] = defaultdict(list)
        for file in files_in(folder, (".txt",)):
            self._files[key(file.stem)].append(file)
        self._opened = cache(self._open)
        self._titles = cache(_titles)

    def novel(self, id: str, language: str) -> Novel:
        """Return the novel with that id in that language. Raises BenchmarkError if there is not exactly one such file,
        or if it does not have one numbered paragraph per line."""
        known = [(language_named(file.relative_to(self._folder).as_posix()), file) for file in self._files[key(id)]]
        found = [file for named, file in known if named == language] or [file for named, file in known if not named]
        if len(found) != 1:
            names = " and ".join(file.name for file in found) or "none"
            raise BenchmarkError(f"{self._folder}: expected one .txt file of novel {id} in {language}, named after its "
                                 f"number, such as '{id}-Title-Author.txt'; found {names}")
        return self._opened(found[0])

    def _open(self, file: Path) -> Novel:
        titles = self._titles(self._folder) | self._titles(file.parent)
        about = titles.get(key(file.stem)) or _split_name(file.stem)
        return Novel(file.relative_to(self._folder).as_posix(), _paragraphs(file), about)


def key(name: str) -> str:
    """Return the first number in a file name or id. Without a number, return the text before the first dash."""
    number = re.search(r"\d+", name)
    return number[0].lstrip("0") or "0" if number else name.split("-")[0].strip()


def language_named(path: str) -> str | None:
    """Return `en` or `zh`, whichever comes last in the path; None if it has neither."""
    named = _LANGUAGE.findall(path.replace("_", " "))
    return None if not named else "en" if named[-1].lower() in ("en", "english") else "zh"


def language_of(text: str) -> str:
    """Return `zh` if at least a tenth of the characters are Chinese, otherwise `en`."""
    return "zh" if len(_CJK.findall(text)) * 10 >= max(len(text), 1) else "en"


def _paragraphs(file: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each paragraph. A line without the next number continues the previous paragraph."""
    number, lines, form = 0, [""], None
    for at, line in enumerate(read_text(file).split("\n"), start=1):
        if form is None and line.strip():
            form = next((known for known in (_BRACKETED, _PLAIN) if known.match(line)), None)
            if form is None:
                raise BenchmarkError(f"{file}, line {at}: expected a paragraph number, such as [1], found "
                                     f"{line.strip()[:40]!r}")
            start = form.match(line)
        else:
            start = form.match(line) if form else None
            if start and int(start[1]) != number + 1 and (form is _PLAIN or int(start[1]) <= number):
                start = None
        if start is None:
            lines.append(line.strip())
            continue
        if number or any(lines):
            yield number, " ".join(filter(None, lines))
        number, lines = int(start[1]), [line[start.end():].strip()]
    if form is None:
        raise BenchmarkError(f"{file}: no paragraph in it")
    yield number, " ".join(filter(None, lines))


def _titles(folder: Path) -> dict[str, str]:
    """Return the description of each novel by id, from a table such as `{"117": {"title": …, "author": …}}`."""
    table, columns = (folder / name for name in TITLES)
    rows: list[Row] = []
    if table.is_file():
        whole = Row(table, 1, {"titles": read_json(table)})
        for id, row in whole.part("titles", whole.fields["titles"]).fields.items():
            rows.append(whole.part(id, {**whole.part(id, row).fields, "novel_id": id}))
    if columns.is_file():
        rows += read_csv(columns)
    return {key(row.text("novel_id")): _about(row.text("title"), row.optional("author")) for row in rows}


def _split_name(stem: str) -> str:
    parts = [part.strip() for part in stem.split(" - " if " - " in stem else "-")]
    if not re.search(r"\d", parts[0]) or len(parts) < 2:
        return ""
    *title, author = parts[1:] if len(parts) > 2 else [*parts[1:], ""]
    return _about("-".join(title), author)


def _about(title: str, author: str) -> str:
    return f"{title} by {author}" if author else title
