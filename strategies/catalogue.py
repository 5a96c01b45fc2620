"""Every strategy under the name that settings and tables use."""
from __future__ import annotations

from documents.errors import SettingsError
from strategies.reasoning import chain_of_draft, chain_of_thought, direct, least_to_most, plan_and_solve, search_only
from strategies.retrieval import none, once
from strategies.types import Reasoning, Retrieval

REASONING: dict[str, Reasoning] = {
    "direct": direct,
    "chain_of_thought": chain_of_thought,
    "chain_of_draft": chain_of_draft,
    "plan_and_solve": plan_and_solve,
    "least_to_most": least_to_most,
}
"""Those that answer. `search_only` stands apart: it asks nothing."""

SEARCH_ONLY = "search_only"
RETRIEVAL: dict[str, Retrieval] = {"none": none, "once": once}


def reasoning(name: str) -> Reasoning:
    """The reasoning strategy of that name; SettingsError lists the names otherwise."""
    known = {**REASONING, SEARCH_ONLY: search_only}
    if name not in known:
        raise SettingsError(f"unknown reasoning strategy {name!r}; there are: {', '.join(known)}")
    return known[name]


def retrieval(name: str) -> Retrieval:
    """The retrieval strategy of that name; SettingsError lists the names otherwise."""
    if name not in RETRIEVAL:
        raise SettingsError(f"unknown retrieval strategy {name!r}; there are: {', '.join(RETRIEVAL)}")
    return RETRIEVAL[name]
