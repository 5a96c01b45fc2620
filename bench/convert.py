"""Write public data of the same capability in the published record format of a benchmark: material for tests.

    python bench/convert.py crest hotpotqa=hotpot_dev_distractor_v1.json --out crest-like
    python bench/convert.py mrceval pubmedqa=ori_pqal.json logicbench=LogicBench rgb=en_fact.json --out mrceval-like
    python bench/convert.py detectiveqa detectbench=test.jsonl novel=2852.txt --out detective-like
    python bench/convert.py mrke musique=musique_ans_v1.0_dev.jsonl --out mrke-like
    python bench/convert.py --list                                          # what can be made of what

The records are not the benchmark's own, and figures over them do not compare with its paper's.
"""
from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import convert_crest
import convert_detectiveqa
import convert_mrceval
from conversion import Converter, Draw, Source, Sources, json_lines, write_records

from documents import Chunk, SettingsError, UserError
from experiments import BENCHMARKS, Question
from experiments.benchmarks.musique import Musique


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    records: list[dict[str, Any]] = []
    for path in sources["musique"]:
        every = Musique(path=str(path)).load().questions
        questions = [one for one in every if one.answerable]
        draw.left_out["questions of MuSiQue that have no answer"] += len(every) - len(questions)
        records += map(_record, draw.limited(questions, lambda question: question.id))
    return {"mrke.jsonl": json_lines(records)}


def _record(question: Question) -> dict[str, Any]:
    """A record whose `#1` stands, as in MuSiQue, for the answer to the first sub-question.

    Its supporting passages are named by place: others may share their titles.
    """
    gold = {item.chunk for item in question.gold}
    return {"id": question.id, "context": [_titled(chunk) for chunk in question.given], "question": question.text,
            "answer": question.answers[0], "sub_questions": list(question.sub_questions),
            "sub_answers": list(question.sub_answers), "hops": len(question.sub_questions), "type": "bridge",
            "supporting_facts": [place for place, chunk in enumerate(question.given) if chunk.id in gold]}


def _titled(chunk: Chunk) -> dict[str, str]:
    title, _, text = chunk.content.partition("\n")
    return {"title": title, "text": text}


MRKE = Converter({
    "musique": Source(
        "MuSiQue (Trivedi et al. 2022), https://github.com/StonyBrookNLP/musique", "CC BY 4.0",
        "a JSON Lines file of it",
        "Its paragraphs are the context, the decomposition gives sub-questions and sub-answers with #1 for the answer "
        "to the first. The facts are not edited, so there is no gap to show. Every question is of type bridge."),
}, _files)


CONVERTERS: Mapping[str, Converter] = {
    "crest": convert_crest.CONVERTER, "mrceval": convert_mrceval.CONVERTER,
    "detectiveqa": convert_detectiveqa.CONVERTER, "mrke": MRKE}


def convert(target: str, sources: Sequence[str], draw: Draw, out: Path) -> tuple[list[Path], int]:
    """Write records in the format of a benchmark into a new folder, and load them as that benchmark.

    Args:
        sources: texts `NAME=PATH`; a name may come again.

    Returns:
        the files, the last of them the one that says what they are made of; and how many questions they hold.

    Raises:
        SettingsError: there is no converter to the target, a source is not known, or the folder is not empty.
        BenchmarkError: a source cannot be read, or does not fit.
    """
    if target not in CONVERTERS:
        raise SettingsError(f"there is no converter to {target!r}; there are: {', '.join(CONVERTERS)}")
    files = write_records(target, CONVERTERS[target], _sources(sources), draw, out)
    return files, len(BENCHMARKS[target].model_validate({"path": str(out)}).load().questions)


def _sources(texts: Sequence[str]) -> Sources:
    sources: dict[str, list[Path]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise SettingsError(f"{text!r}: expected NAME=PATH")
        sources.setdefault(name, []).append(Path(path).expanduser())
    return sources


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("target", nargs="?", help=f"one of {', '.join(CONVERTERS)}")
    parser.add_argument("sources", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--out", type=Path, help="a new folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="the most questions of each source")
    given = parser.parse_args()
    if given.list:
        for target, converter in CONVERTERS.items():
            for name, source in converter.sources.items():
                print(f"{target:12} {name:12} {source.what} ({source.licence}): {source.path}. {source.becomes}")
        return
    if given.target is None or given.out is None:
        parser.error("give a benchmark, NAME=PATH and --out")
    try:
        draw = Draw(given.seed, given.limit)
        files, count = convert(given.target, given.sources, draw, given.out)
    except UserError as error:
        parser.error(str(error))
    print(f"{count} questions in {given.out}; what they are made of is in {files[-1]}", *draw.told(), sep="\n")


if __name__ == "__main__":
    main()
