"""DetectiveQA-shaped records: short cases, and whole novels with questions of our own."""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from experiments.converters.conversion import Converter, Draw, Source, Sources
from experiments.converters.detectiveqa_cases import read_cases
from experiments.converters.detectiveqa_novels import Told, paragraphs_of, read_novel


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    before = [paragraph for path in sources.get("before", ()) for paragraph in paragraphs_of(path)]
    told = [_fewer(read_novel(path, before), draw) for path in sources.get("novel", ())]
    for path in sources.get("detectbench", ()):
        told += draw.limited(list(read_cases(path)), lambda case: case.stem)
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
