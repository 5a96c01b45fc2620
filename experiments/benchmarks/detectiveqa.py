"""DetectiveQA: multiple choice over whole detective novels, with the reasoning that leads to each answer.

Paper: Xu, Ye, Zhang, Liu, Liu, Yang, Guo, Qiu, "DetectiveQA: Evaluating Long-Context Reasoning on Detective Novels",
arXiv:2409.02465. Data: `Phospheneser/DetectiveQA` on the Hugging Face hub, Apache 2.0 by its page; the novels are their
authors'. It is not included in this project. Annotations are in files such as `anno_data_en/human_anno/117.json`, the
text of the novel in `novel_data_en/117-Title-Author.txt`, one paragraph a line: `[740] She had left her luggage.`

One made-up record. `clue_position` may be called `evidence_position`; -1 marks a step that is inferred:

    {"novel_id": 7, "num_paragraphs": 12, "time_cost": 40, "questions": [
      {"question": "Who moved the lamp?", "options": {"A": "Ida", "B": "Otto", "C": "Nell", "D": "Nobody"},
       "answer": "B", "reasoning": ["There was oil on Otto's sleeve.", "So Otto had held the lamp."],
       "clue_position": [4, -1], "answer_position": 11, "distraction": {"A": "Ida was seen near it."}}]}

`distraction` was for the annotators and is ignored.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal

from ragbed.documents.rows import Row, convert_records, read_rows, skip_bad_records
from ragbed.experiments.benchmarks.base import About, Loaded, Selection, collect_questions, files_below
from ragbed.experiments.benchmarks.detectiveqa_novels import TITLES, Novel, Shelf, language_named, language_of
from ragbed.experiments.benchmarks.fields import choices, gold_chunk, letter_of, tagged
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.question import Benchmark, Gold, Question, Scheme, Step

_INFERRED = -1
_NOVELS = ("*.txt", "*.csv")  # titles.json is fetched like every .json file


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
        licence="Apache 2.0 by the dataset's page; the novels are their authors'",
        size="1,200 questions over novels of 100,000 words and more, in English and in Chinese",
        get="hub:Phospheneser/DetectiveQA, or a folder of its annotations and novels",
        settings={"rules": "choice", "conditions": ["full", "closed-book", "gold"],
                  "reasoning": "chain_of_thought"})
    scheme = Scheme(
        groups=("choice", "steps", "ranking", "form"), rubric="steps", columns=("accuracy", "reasoning_score", "gm"),
        views=("wins", "depth", "by:language", "by:annotation"), published=("detectiveqa_6", "detectiveqa_8"))

    kind: Literal["detectiveqa"] = "detectiveqa"
    path: str = "hub:Phospheneser/DetectiveQA"
    novels: str | None = None

    def load(self) -> Benchmark:
        """Load the selected questions, and only their novels."""
        path = fetch_files(self.path, also=_NOVELS)
        shelf = Shelf(fetch_files(self.novels, also=_NOVELS) if self.novels else path if path.is_dir() else path.parent)
        with skip_bad_records(self.skip_bad) as skipped:
            records = {question.id: (question, row) for question, row in _records(path)}
            chosen = self.select(Benchmark("detectiveqa", tuple(question for question, _ in records.values())))
            questions, documents = collect_questions(convert_records(
                lambda question: _over(*records[question.id], shelf.novel(
                    question.tags["novel"][0], question.tags["language"][0])), chosen.questions))
        return replace(chosen, questions=questions, documents=documents, skipped=tuple(skipped))


def _records(path: Path) -> Iterator[tuple[Question, Row]]:
    """Return the questions without their novels. Records that share a novel continue its numbering, separately for each
    annotation."""
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
        tags = tagged(novel=novel, language=language, annotation=annotation)
        return replace(question, id=f"{id}-{seen[id]}", tags={**tags, **question.tags}), part

    files = (file for file in files_below(path, (".json", ".jsonl")) if file.name not in TITLES)
    rows = chain.from_iterable(map(read_rows, files))
    return convert_records(made, chain.from_iterable(convert_records(parts, rows)))


def _question(row: Row) -> Question:
    """Return the question of one annotation, without its novel and id. Its tag `clues` is `late` if a clue comes after
    the place where the context is cut."""
    options = choices(row, "options")
    late = max(_positions(row), default=_INFERRED) >= row.number("answer_position")
    return Question(id="", text=row.filled("question").strip(), answers=(letter_of(row, options),), answerable=True,
                    options=options, steps=tuple(map(Step, row.filled_texts("reasoning"))),
                    tags=tagged(clues="late" if late else "before"))


def _over(question: Question, row: Row, novel: Novel) -> Loaded:
    """Return the question with its novel up to the paragraph before the answer, whole and by paragraph."""
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
                 else Gold(f"{novel.document.id}#{position}") for position in clues)  # counted, never found
    return replace(question, pool=pool, whole=(whole,), gold=gold, steps=steps, about=novel.about), [novel.document]


def _positions(row: Row) -> list[int]:
    field = "clue_position" if "clue_position" in row.fields else "evidence_position"
    positions = row.fields.get(field)
    if not isinstance(positions, list) or not all(type(position) is int for position in positions):
        row.fail("clue_position", "a list of paragraph numbers, -1 for an inference", positions)
    return positions


def _annotation(file: Path) -> str:
    """Return the kind of annotation that the name of the file or its folder gives, such as `human_anno`."""
    names = [name for name in (file.parent.name, file.stem) if "anno" in name.lower() and language_named(name) is None]
    return names[0] if names else "annotation"
