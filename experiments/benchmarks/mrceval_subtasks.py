"""MRCEval's three tasks and thirteen sub-tasks, and the names under which files know them (Table 1 of the paper)."""
from __future__ import annotations

from strategies.reading import fold

# The task of each sub-task, in the order of Table 2.
TASKS = {
    "entity": "Context", "relation": "Context", "event": "Context", "counterfactual": "Context",
    "unanswerable": "Context", "inconsistent": "Context", "commonsense": "Knowledge", "world": "Knowledge",
    "domain": "Knowledge", "logical": "Reasoning", "arithmetic": "Reasoning", "multi-hop": "Reasoning",
    "temporal": "Reasoning",
}

# Folded words that name a sub-task: other spellings, and the dataset that all its items come from.
_NAMES = {
    **{fold(name): name for name in TASKS},
    "entities": "entity", "relations": "relation", "events": "event", "inconsistency": "inconsistent",
    "unanswerability": "unanswerable", "common sense": "commonsense", "logic": "logical", "arithmetics": "arithmetic",
    "multihop": "multi-hop", "temporality": "temporal",
    "squad": "entity", "docred": "relation", "maven arg": "event", "maven": "event", "cosmosqa": "commonsense",
    "cosmos qa": "commonsense", "korc": "world", "pubmedqa": "domain", "logicbench": "logical", "drop": "arithmetic",
    "morehopqa": "multi-hop", "menatqa": "temporal",
}
_TASK_WORDS = {"context": "Context", "knowledge": "Knowledge", "reasoning": "Reasoning"}


def named_subtask(text: str) -> str | None:
    """The one sub-task that the text names, such as `Temporal reasoning` or `facts_understanding/entity`.

    None where it names none, or several.
    """
    folded = f" {fold(text)} "
    named = {subtask for name, subtask in _NAMES.items() if f" {name} " in folded}
    return named.pop() if len(named) == 1 else None


def named_task(text: str) -> str | None:
    """The one task that the text names; None where it names none, or several."""
    named = {task for word, task in _TASK_WORDS.items() if word in fold(text).split()}
    return named.pop() if len(named) == 1 else None
