"""MRCEval: reading comprehension in three tasks and thirteen sub-tasks, multiple choice.

Paper: Ma, Peng, Hou, Li, "MRCEval: A Comprehensive, Challenging and Accessible Machine Reading Comprehension
Benchmark", arXiv:2503.07144. Code: github.com/THU-KEG/MRCEval. Data: `THU-KEG/MRCEval` on the Hugging Face hub, one
Parquet file; MIT by its page, CC BY-SA 4.0 by the paper. It is not included in this project.

One invented row in the published format. The sub-task may also be given by the name of the file or its folder:

    {"context": "The Aster ferry carried 40 people on Monday and twice as many on Tuesday.",
     "question": "How many people did the ferry carry on Tuesday?",
     "choices": ["40", "80", "120", "None of the above"], "answer": "B", "subtask": "arithmetic"}

Tasks and sub-tasks follow the paper's Table 1. That table counts 24 relation, 18 event and 145 world items, but the
figures of Table 2 imply 110, 28 and 200. A run covers all items in the file.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal

from ragbed.documents.rows import Row, convert_records
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles
from ragbed.experiments.benchmarks.fields import choices, find_letter, gold_chunk, make_tags, passages, unique_id
from ragbed.experiments.question import Question, Scheme
from ragbed.strategies.reading import fold

# The task of each sub-task, in the order of Table 2.
TASKS = {
    "entity": "Context", "relation": "Context", "event": "Context", "counterfactual": "Context",
    "unanswerable": "Context", "inconsistent": "Context", "commonsense": "Knowledge", "world": "Knowledge",
    "domain": "Knowledge", "logical": "Reasoning", "arithmetic": "Reasoning", "multi-hop": "Reasoning",
    "temporal": "Reasoning",
}

# Case-folded names of sub-tasks: other spellings, and the data set from which all items of the sub-task come.
_NAMES = {
    **{fold(name): name for name in TASKS},
    "entities": "entity", "relations": "relation", "events": "event", "inconsistency": "inconsistent",
    "unanswerability": "unanswerable", "common sense": "commonsense", "logic": "logical", "arithmetics": "arithmetic",
    "multihop": "multi-hop", "temporality": "temporal",
    "squad": "entity", "docred": "relation", "maven arg": "event", "maven": "event", "cosmosqa": "commonsense",
    "cosmos qa": "commonsense", "korc": "world", "pubmedqa": "domain", "logicbench": "logical", "drop": "arithmetic",
    "morehopqa": "multi-hop", "menatqa": "temporal",
}
_TASKS = {task.lower(): task for task in TASKS.values()}


def named_subtask(text: str) -> str | None:
    """Return the one sub-task that the text names, such as `Temporal reasoning` or `facts_understanding/entity`; None
    if it names none or several."""
    return _find_names(text, _NAMES)


def _find_names(text: str, names: Mapping[str, str]) -> str | None:
    folded = f" {fold(text)} "
    named = {known for name, known in names.items() if f" {name} " in folded}
    return named.pop() if len(named) == 1 else None


_SUBTASK_FIELDS = ("subtask", "sub_task", "sub-task", "task", "category")


class Mrceval(RecordFiles):
    """MRCEval from local files or the hub."""

    about = About(
        paper="MRCEval: A Comprehensive, Challenging and Accessible Machine Reading Comprehension Benchmark (2025), "
              "https://github.com/THU-KEG/MRCEval",
        licence="MIT by the dataset's page, CC BY-SA 4.0 by the paper",
        size="2,103 multiple-choice questions by the paper's Table 1, thirteen sub-tasks",
        get="hub:THU-KEG/MRCEval, or its Parquet file",
        settings={"rules": "choice", "conditions": "provided", "reasoning": "direct", "layout": "as_published"})
    scheme = Scheme(groups=("choice", "form", "ranking"), rubric=None, columns=("accuracy", "unparsed"),
                    views=("by:task", "by:subtask"), published=("mrceval_2",))

    kind: Literal["mrceval"] = "mrceval"
    path: str = "hub:THU-KEG/MRCEval"

    def loaded(self) -> Iterable[Loaded]:
        """Yield the questions. Questions without an id are numbered by sub-task."""
        seen: Counter[str] = Counter()
        return convert_records(partial(_question, seen=seen), self.rows())


def _question(row: Row, seen: Counter[str]) -> Loaded:
    tags, options, context = _tags(row), choices(row, "choices", len("ABCD")), row.optional("context")
    if "context" not in row.fields:
        row.fail("context", "text or null", None)
    documents, given = passages([("", context)] if context.strip() else [])
    return Question(
        id=_id(row, tags, seen), text=row.filled("question"), answers=(find_letter(row, options),), answerable=True,
        gold=tuple(map(gold_chunk, given)), provided=given, options=options,
        tags=tags | make_tags(context="" if given else "none")), documents


def _id(row: Row, tags: Mapping[str, tuple[str, ...]], seen: Counter[str]) -> str:
    stated = row.stated_id()
    if stated is not None:
        return unique_id(stated, seen)
    kind = tags.get("subtask", tags.get("task", ("question",)))[0].lower()
    seen[f"of {kind}"] += 1
    return unique_id(f"{kind}-{seen[f'of {kind}']}", seen)


def _tags(row: Row) -> dict[str, tuple[str, ...]]:
    """Return the sub-task and its task, as named by the record or else by the file or folder."""
    stated = {field: row.text(field) for field in _SUBTASK_FIELDS if row.fields.get(field) is not None}
    names = list(stated.values()) or [row.file.stem, row.file.parent.name]
    subtask = next((known for name in names if (known := named_subtask(name))), None)
    task = TASKS[subtask] if subtask else next((known for name in names if (known := _find_names(name, _TASKS))), None)
    field = next(iter(stated), "")
    if stated and (task is None or (subtask is None and field.startswith("sub"))):
        row.fail(field, f"one of the sub-tasks {', '.join(TASKS)}", stated[field])
    return make_tags(task=task or "", subtask=subtask or "")
