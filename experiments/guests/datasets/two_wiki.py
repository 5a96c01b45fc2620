"""2WikiMultihopQA: questions over two to four of ten Wikipedia paragraphs, with the facts that lead to the answer.

Paper: Ho, Duong Nguyen, Sugawara, Aizawa, "Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of
Reasoning Steps", COLING 2020, arXiv:2011.01060. Code and data: github.com/Alab-NII/2wikimultihop, Apache-2.0.

One made-up row in the published shape; some copies on the hub have `context` and other fields as JSON text:

    {"_id": "13f5ad2c088c11ebbd6fac1f6bf848b6", "type": "bridge_comparison",
     "question": "Do the director of Low Tide and the director of Grey Harbour come from the same country?",
     "answer": "no", "context": [["Low Tide", ["Low Tide is a 1951 film directed by Ana Prell.", "It ..."]], ...],
     "supporting_facts": [["Low Tide", 0], ["Ana Prell", 0], ...],
     "evidences": [["Low Tide", "director", "Ana Prell"], ["Ana Prell", "country of citizenship", "Austria"], ...]}

Version 1.1 adds `answer_id` to each row, and a file of answer aliases, one record per line:

    {"Q_id": "Q40", "aliases": ["Republic of Austria"], "demonyms": ["Austrian"]}
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ragbed.documents.rows import Row, convert_records, read_rows
from ragbed.experiments.benchmarks.base import About, Loaded
from ragbed.experiments.benchmarks.hub import fetch_files
from ragbed.experiments.guests.datasets.splits import PooledFiles
from ragbed.experiments.guests.datasets.titled import Units, with_facts
from ragbed.experiments.question import Question, Scheme, Step

_ALIASES = "id_aliases.json"


class TwoWiki(PooledFiles):
    """2WikiMultihopQA. If `id_aliases.json` is next to the questions, its aliases are accepted answers too.

    Attributes:
        units: whether a chunk is a paragraph or a sentence. With sentences the support metrics are the benchmark's own.
    """

    about = About(
        paper="Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of Reasoning Steps (2020), "
              "https://arxiv.org/abs/2011.01060",
        licence="Apache-2.0",
        size="12,576 questions in the dev split, ten paragraphs each; support figures are of paragraphs unless "
             "units: sentences is set",
        get="dev.json of the data that https://github.com/Alab-NII/2wikimultihop links to",
        settings={"rules": "open", "brief": True})
    scheme = Scheme(groups=("overlap", "support", "answers", "ranking", "form"), rubric="grades",
                    columns=("em", "f1", "support_f1", "support_joint_f1"), views=("by:type",))

    kind: Literal["two_wiki"] = "two_wiki"
    units: Units = "paragraphs"

    def files(self) -> list[Path]:
        """List the files of the questions."""
        return [file for file in super().files() if file.name != _ALIASES]

    def rows(self) -> Iterator[Row]:
        """Yield the records, each with the aliases of its answer."""
        path = fetch_files(self.path)
        names = _names((path if path.is_dir() else path.parent) / _ALIASES)
        return convert_records(lambda row: replace(
            row, fields={**row.fields, "aliases": names.get(row.optional("answer_id"), [])}), super().rows())

    def question(self, row: Row) -> Loaded:
        """Return the question of one record; its evidence triples are the reference reasoning."""
        material = with_facts(row, self.units)
        answers = dict.fromkeys((row.filled("answer"), *row.texts("aliases")))
        return Question(id=row.id("_id", "id"), text=row.filled("question"), answers=tuple(answers), answerable=True,
                        gold=material.gold, provided=material.provided, steps=_steps(row),
                        tags={"type": (row.text("type"),)}), material.documents


def _names(file: Path) -> dict[str, list[str]]:
    """Return the aliases and demonyms of an answer by its id; none if the file is missing."""
    if not file.is_file():
        return {}
    return {row.text("Q_id"): [*row.texts("aliases"), *row.texts("demonyms")] for row in read_rows(file)}


def _steps(row: Row) -> tuple[Step, ...]:
    triples = row.decoded("evidences", list, "a list of triples of texts")
    for place, triple in enumerate(triples):
        if not isinstance(triple, list) or len(triple) != 3 or not all(isinstance(part, str) for part in triple):
            row.fail(f"evidences[{place}]", "subject, relation and object as three texts", triple)
    return tuple(Step(" | ".join(triple)) for triple in triples)
