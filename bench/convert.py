"""Write public data that tests the same capability in a benchmark's published record format, as test material.

    python bench/convert.py crest hotpotqa=hotpot_dev_distractor_v1.json --out crest-like
    python bench/convert.py mrceval pubmedqa=ori_pqal.json logicbench=LogicBench rgb=en_fact.json --out mrceval-like
    python bench/convert.py detectiveqa detectbench=test.jsonl novel=2852.txt --out detective-like
    python bench/convert.py mdbench tabfact=small_test_tables.json --out mdbench-like
    python bench/convert.py mrke musique=musique_ans_v1.0_dev.jsonl --out mrke-like
    python bench/convert.py mrke edited=musique_ans_v1.0_dev.jsonl --out mrke-edited
    python bench/convert.py --list                                          # what can be made of what

The records are not the benchmark's own, and figures over them do not compare with its paper's.
"""
from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import convert_crest
import convert_detectiveqa
import convert_mdbench
import convert_mrceval
from conversion import Converter, Draw, Source, Sources, json_lines, write_records

from ragbed.documents import Chunk, SettingsError, UserError
from ragbed.experiments import BENCHMARKS, Question
from ragbed.experiments.guests.datasets.musique import Musique


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    records: list[dict[str, Any]] = []
    for path in sources.get("musique", ()):
        records += map(_record, draw.limited(_answerable(path, draw), lambda question: question.id))
    for path in sources.get("edited", ()):
        records += draw.limited(_edited(_answerable(path, draw), draw), lambda record: str(record["id"]))
    return {"mrke.jsonl": json_lines(records)}


def _record(question: Question) -> dict[str, Any]:
    """A record whose `#1` stands, as in MuSiQue, for the answer to the first sub-question.

    Its supporting passages are named by place: others may share their titles.
    """
    gold = {item.chunk for item in question.gold}
    return {"id": question.id, "context": [_titled(chunk) for chunk in question.provided], "question": question.text,
            "answer": question.answers[0], "sub_questions": list(question.sub_questions),
            "sub_answers": list(question.sub_answers), "hops": len(question.sub_questions), "type": "bridge",
            "supporting_facts": [place for place, chunk in enumerate(question.provided) if chunk.id in gold]}


def _answerable(path: Path, draw: Draw) -> list[Question]:
    every = Musique(path=str(path)).load().questions
    questions = [one for one in every if one.answerable]
    draw.left_out["questions of MuSiQue that have no answer"] += len(every) - len(questions)
    return questions


def _edited(questions: Sequence[Question], draw: Draw) -> list[dict[str, Any]]:
    """Records over the supporting passages alone, short ones, in which the answer to another question stands wherever
    the answer did; the original stands beside."""
    made = []
    for one in questions:
        whole, old = _record(one), one.answers[0]
        context = [whole["context"][place] for place in whole["supporting_facts"]]
        said = "\n".join(f"{part['title']}\n{part['text']}" for part in context)
        asked = "\n".join([one.text, *one.sub_questions, *one.sub_answers[:-1]])
        others = [other for other in questions if _shape(other) == _shape(one)
                  and not _stands(other.answers[0], said + asked)]
        exchangeable = _stands(old, said) and one.sub_answers[-1] == old and not any(
            _stands(answer, asked) or (answer != old and _stands(answer, said)) for answer in one.answers)
        if exchangeable and others and len(said) <= _SHORT * len(context):
            ranked = draw.ranked(others, lambda other: other.id, "edited", one.id)
            new = min(ranked, key=lambda other: _relation(other) != _relation(one)).answers[0]
            swapped = [{name: re.sub(_word(old), lambda _, new=new: new, text, flags=re.I)
                        for name, text in part.items()} for part in context]
            gold = list(range(len(context)))
            made.append({**whole, "context": swapped, "answer": new, "sub_answers": [*one.sub_answers[:-1], new],
                         "supporting_facts": gold, "original": {
                             "context": context, "question": one.text, "answer": old, "supporting_facts": gold}})
    draw.left_out["questions of MuSiQue with long passages, or whose answer cannot be exchanged"] += (
        len(questions) - len(made))
    return made


_ASKS = re.compile(r"\b(?:who|whose|when|where|what year|how)\b")
_SHORT = 600  # characters of a supporting passage, on average


def _shape(one: Question) -> tuple[str, bool, bool]:
    """What two questions share whose answers can stand for each other: the question word, and the look of the
    answer."""
    word, answer = _ASKS.search(one.text.lower()), one.answers[0]
    return word[0] if word else "", any(map(str.isdigit, answer)), answer[:1].isupper()


def _relation(one: Question) -> str:
    """What the last step asks for, as in `#1 >> capital`."""
    return one.sub_questions[-1].rpartition(">>")[2].strip()


def _stands(answer: str, text: str) -> bool:
    return re.search(_word(answer), text, flags=re.I) is not None


def _word(answer: str) -> str:
    return rf"(?<!\w){re.escape(answer)}(?!\w)"


def _titled(chunk: Chunk) -> dict[str, str]:
    title, _, text = chunk.content.partition("\n")
    return {"title": title, "text": text}


MRKE = Converter({
    "musique": Source(
        "MuSiQue (Trivedi et al. 2022), https://github.com/StonyBrookNLP/musique", "CC BY 4.0",
        "a JSON Lines file of it",
        "Its paragraphs are the context, the decomposition gives sub-questions and sub-answers with #1 for the answer "
        "to the first. The facts are not edited, so there is no gap to show. Every question is of type bridge."),
    "edited": Source(
        "MuSiQue (Trivedi et al. 2022), https://github.com/StonyBrookNLP/musique", "CC BY 4.0",
        "a JSON Lines file of it",
        "The supporting passages alone are the context. In the edited version the answer to another question of the "
        "same question word, of the same relation where there is one, stands wherever the answer did. Nothing else is "
        "changed; MRKE has models rewrite passages and questions, and people check "
        "them. The original stands beside."),
}, _files)


CONVERTERS: Mapping[str, Converter] = {
    "crest": convert_crest.CONVERTER, "mrceval": convert_mrceval.CONVERTER,
    "detectiveqa": convert_detectiveqa.CONVERTER, "mdbench": convert_mdbench.CONVERTER, "mrke": MRKE}


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
    parser.add_argument("--out", type=Path, help="folder to create")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="maximum number of questions per source")
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
    print(f"{count} questions in {given.out}; {files[-1]} lists their sources", *draw.told(), sep="\n")


if __name__ == "__main__":
    main()
