"""Convert detective novels and short cases to records in DetectiveQA's format.

Questions on the novels were written for ragbed; quotations locate their clues and answers in the text. DetectBench's
short cases become novels of one page, with a paragraph per sentence; their clues are located by their words.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conversion import Converter, Draw, Source, Sources

from ragbed.documents import BenchmarkError, parse_document
from ragbed.documents.rows import Row, read_json, read_rows, read_text
from ragbed.experiments.benchmarks.base import files_in
from ragbed.experiments.benchmarks.fields import letter_options
from ragbed.strategies.normalizing import normalize_answer

_QUESTIONS = Path(__file__).with_name("novel_questions.json")
_START = re.compile(r"\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG EBOOK.*?\*\*\*", re.DOTALL)
_END = re.compile(r"\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG EBOOK")
_NOT_THE_NOVEL = re.compile(r"End of (?:the )?Project Gutenberg|Produced by ")
_FOLDED = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "—": "--"})
_PAGES = (".xhtml", ".html", ".htm")


@dataclass(frozen=True, slots=True)
class Told:
    """A novel with its questions.

    Attributes:
        stem: the name of its text file: number, title and author.
        paragraphs: one string each, the first is number 1.
        questions: as DetectiveQA's records have them.
    """

    number: int
    stem: str
    paragraphs: tuple[str, ...]
    questions: tuple[dict[str, Any], ...]


def read_novel(path: Path, before: Sequence[str] = ()) -> Told:
    """The novel of a Gutenberg text file, with the questions that there are for it.

    Args:
        before: paragraphs of other novels, which come first.

    Raises:
        BenchmarkError: it is no such file, there are no questions for it, or a quotation does not stand in it once.
    """
    text = read_text(path)
    known = read_json(_QUESTIONS)
    title = next((novel for novel in known if novel["title"].lower() in text[:5000].lower()), None)
    if title is None:
        raise BenchmarkError(f"{path}: there are questions for {' and '.join(novel['title'] for novel in known)} alone")
    own = _between_the_marks(path, text)
    if title["begins"] not in own:
        raise BenchmarkError(f"{path}: another edition: it has no paragraph {title['begins']!r}")
    own = own[own.index(title["begins"]):]
    return Told(title["number"], f"{title['number']}-{title['title']}-{title['author']}", (*before, *own),
                tuple(_novel_question(path, own, question, len(before)) for question in title["questions"]))


def paragraphs_of(path: Path) -> list[str]:
    """The paragraphs of a Gutenberg text file, an HTML page, or a folder of pages in order of name.

    Raises:
        BenchmarkError: it is none of these.
    """
    if path.is_dir():
        return [paragraph for file in files_in(path, (".txt", *_PAGES)) for paragraph in paragraphs_of(file)]
    if path.suffix not in _PAGES:
        return _between_the_marks(path, read_text(path))
    try:
        return _split(parse_document(path.read_bytes(), path.name).text("plain"))
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}") from error


def _between_the_marks(path: Path, text: str) -> list[str]:
    """The paragraphs without Project Gutenberg's header and licence."""
    start, end = _START.search(text), _END.search(text)
    if start is None or end is None:
        raise BenchmarkError(f"{path}: expected a text file of Project Gutenberg, with its START and END marks")
    return [paragraph for paragraph in _split(text[start.end():end.start()]) if not _NOT_THE_NOVEL.match(paragraph)]


def _split(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


def _novel_question(path: Path, paragraphs: Sequence[str], question: Mapping[str, Any], shift: int) -> dict[str, Any]:
    """The question as a record has it; its paragraphs are counted from 1, after those that come first."""
    told = _novel_place(path, paragraphs, question["told"])
    clues = [-1 if step["quote"] is None else _novel_place(path, paragraphs, step["quote"]) + shift
             for step in question["steps"]]
    return {"question": question["question"], "options": question["options"], "answer": question["answer"],
            "reasoning": [step["step"] for step in question["steps"]], "clue_position": clues,
            "answer_position": told + shift, "distraction": {}}


def _novel_place(path: Path, paragraphs: Sequence[str], quote: str) -> int:
    wanted = _folded(quote)
    found = [number for number, text in enumerate(paragraphs, start=1) if wanted in _folded(text)]
    if len(found) != 1:
        raise BenchmarkError(f"{path}: expected one paragraph with {quote!r}, found {len(found)}; "
                             "this may be another edition")
    return found[0]


def _folded(text: str) -> str:
    """Without the differences between editions: straight quotation marks and dashes, no emphasis, small letters."""
    return text.translate(_FOLDED).replace("_", "").lower()


_FIRST = 100_000  # what is added to a case's number, so that no novel of Project Gutenberg has it too
_SENTENCE = re.compile(r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)"
                       r"(?:(?<=[.!?][\"'”’])\s+|(?<=[.!?])\s+(?=[\"'“‘A-Z0-9]))")
_NUMBER = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s*")
_ARROW = re.compile(r"\s*(?:->|→)\s*")
_SAID = 0.6  # of a clue's longer words, in one sentence


def read_cases(path: Path, draw: Draw) -> Iterator[Told]:
    """The cases of a JSON Lines file, without those of which no clue could be found, which are counted.

    Raises:
        BenchmarkError: the file cannot be read, or a case does not fit.
    """
    for row in read_rows(path):
        number = row.number("id") + _FIRST
        paragraphs = [sentence.strip() for sentence in _SENTENCE.split(" ".join(row.text("context").split()))
                      if sentence.strip()]
        question = _case_question(row, paragraphs)
        if any(place > 0 for place in question["clue_position"]):
            yield Told(number, f"{number}-Case {row.number('id')} of DetectBench", tuple(paragraphs), (question,))
        else:
            draw.left_out["cases of DetectBench of which no clue was found in the text"] += 1


def _case_question(row: Row, paragraphs: Sequence[str]) -> dict[str, Any]:
    options, answer = letter_options(row.texts("options")), row.number("answer")
    if not 0 <= answer < len(options):
        row.fail("answer", f"a number from 0 to {len(options) - 1}", answer)
    graph = row.part("clue_graph", row.fields.get("clue_graph"))
    evidence, reasoning = _lines(graph.text("evidence")), _lines(graph.text("multi_hop_reasoning"))
    inferred = [line for line in reasoning if line not in evidence]
    return {"question": row.text("question"), "options": dict(options), "answer": options[answer][0],
            "reasoning": [*evidence, *inferred],
            "clue_position": [
                _case_place(_ARROW.split(line)[0], paragraphs) for line in evidence] + [-1] * len(inferred),
            "answer_position": len(paragraphs) + 1, "distraction": {}}


def _lines(text: str) -> list[str]:
    """The steps, one on each line that has an arrow; the others are headings."""
    lines = (_NUMBER.sub("", line).strip() for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if _ARROW.search(line)))


def _case_place(clue: str, paragraphs: Sequence[str]) -> int:
    """The paragraph, from 1, that has most of the clue's words; -1 where none has enough of them."""
    wanted = {word for word in normalize_answer(clue).split() if len(word) > 3}
    shares = [len(wanted & set(normalize_answer(text).split())) / len(wanted) if wanted else 0.0 for text in paragraphs]
    best = max(shares, default=0.0)
    return shares.index(best) + 1 if best >= _SAID else -1


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    before = [paragraph for path in sources.get("before", ()) for paragraph in paragraphs_of(path)]
    told = [_fewer(read_novel(path, before), draw) for path in sources.get("novel", ())]
    for path in sources.get("detectbench", ()):
        told += draw.limited(list(read_cases(path, draw)), lambda case: case.stem)
    files: dict[str, str] = {}
    for one in told:
        files[f"anno_data_en/human_anno/{one.number}.json"] = _record(one)
        files[f"novel_data_en/{one.stem}.txt"] = "".join(
            f"[{number}] {text}\n" for number, text in enumerate(one.paragraphs, start=1))
    return files


def _fewer(told: Told, draw: Draw) -> Told:
    return replace(told, questions=tuple(draw.limited(told.questions, lambda question: str(question["question"]))))


def _record(told: Told) -> str:
    return json.dumps({"novel_id": told.number, "num_paragraphs": len(told.paragraphs), "time_cost": 0,
                       "questions": list(told.questions)}, ensure_ascii=False, indent=1) + "\n"


CONVERTER = Converter({
    "detectbench": Source(
        "DetectBench (Gu et al. 2024), https://github.com/MikeGu721/DetectBench", "none stated",
        "train.jsonl or test.jsonl",
        "Each case is a novel of one page, a sentence a paragraph; the whole case is shown. Steps are the lines of its "
        "clues and reasoning; a clue's paragraph is the one that has three fifths of its longer words, else "
        "none; cases of which no clue was found are left out."),
    "novel": Source(
        "The Hound of the Baskervilles (Conan Doyle 1902) or The Mysterious Affair at Styles (Christie 1920), "
        "https://www.gutenberg.org/ebooks/2852 and /863", "public domain in the US",
        "its plain text file of Project Gutenberg",
        "Questions, options and reasoning steps are ragbed's own, six for each novel; clues and answers were found in "
        "the text by what they quote. Project Gutenberg's header and licence are cut off."),
    "before": Source(
        "novels that come before each `novel`, so that its context is longer", "as theirs",
        "a plain text file of Project Gutenberg, or a page or folder of HTML", "Nothing is asked about them."),
}, _files)
