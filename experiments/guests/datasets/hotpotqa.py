"""HotpotQA: questions over two of ten Wikipedia paragraphs, with the supporting sentences listed.

Paper: Yang, Qi, Zhang, Bengio, Cohen, Salakhutdinov, Manning, "HotpotQA: A Dataset for Diverse, Explainable Multi-hop
Question Answering", EMNLP 2018, arXiv:1809.09600. Site: hotpotqa.github.io. CC BY-SA 4.0.

One row of `hotpot_dev_distractor_v1.json`, its paragraphs cut; the hub's files hold the same in columns:

    {"_id": "5abe953b5542993f32c2a170", "question": "what is one of the stars of  The Newcomers known for",
     "answer": "superhero roles as the Marvel Comics", "type": "bridge", "level": "hard",
     "supporting_facts": [["The Newcomers (film)", 0], ["Chris Evans (actor)", 1]],
     "context": [["Chris Evans (actor)", ["Christopher Robert Evans (born June 13, 1981) is an American actor ...",
                                          " Evans is known for his superhero roles as the Marvel Comics ..."]], ...]}
"""
from __future__ import annotations

from typing import Literal

from ragbed.documents.rows import Row
from ragbed.experiments.benchmarks.base import About, Loaded
from ragbed.experiments.guests.datasets.splits import PooledFiles
from ragbed.experiments.guests.datasets.titled import Units, with_facts
from ragbed.experiments.question import Question, Scheme


class HotpotQa(PooledFiles):
    """HotpotQA in the distractor or full-wiki setting.

    Attributes:
        units: whether a chunk is a paragraph or a sentence. With sentences the support metrics are HotpotQA's own.
    """

    about = About(
        paper="HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering (2018), "
              "https://arxiv.org/abs/1809.09600",
        licence="CC BY-SA 4.0",
        size="7,405 questions in the dev split, ten paragraphs each; support figures are of paragraphs unless "
             "units: sentences is set",
        get="hotpot_dev_distractor_v1.json from https://hotpotqa.github.io, or a folder of the hub's "
            "hotpotqa/hotpot_qa, such as distractor/",
        settings={"rules": "open", "brief": True})
    scheme = Scheme(groups=("overlap", "support", "answers", "ranking", "form"), rubric="grades",
                    columns=("em", "f1", "support_f1", "support_joint_f1"), views=("by:type",))

    kind: Literal["hotpotqa"] = "hotpotqa"
    units: Units = "paragraphs"

    def question(self, row: Row) -> Loaded:
        """Return the question of one record."""
        material = with_facts(row, self.units)
        tags = {name: (row.text(name),) for name in ("type", "level") if row.fields.get(name)}
        return Question(id=row.id("_id", "id"), text=row.filled("question"), answers=(row.filled("answer"),),
                        answerable=True, gold=material.gold, provided=material.provided, tags=tags), material.documents
