"""Every strategy of the project under the name that settings and tables use."""
from __future__ import annotations

from collections.abc import Callable

from strategies.reasoning import (
    chain_of_draft,
    chain_of_thought,
    chain_of_verification,
    direct,
    few_shot,
    ircot,
    least_to_most,
    native,
    plan_and_solve,
    program_aided,
    quote_first,
    react,
    reflect,
    search_only,
    self_ask,
    self_consistency,
    semi_structured,
    sufficient,
    supported,
    table_first,
    tree_of_thought,
)
from strategies.retrieval import (
    adaptive,
    corrective,
    decompose,
    hyde,
    iterative,
    multi_query,
    none,
    once,
    step_back,
)
from strategies.types import Gathering, Recipe

SEARCH_ONLY = "search_only"
UNAIDED = ("none", "once")
"""The retrieval strategies that ask no model."""
CRESTS = ("direct", "chain_of_thought", "chain_of_draft", "plan_and_solve", "least_to_most")
"""The five that the CReSt paper compares."""

REASONING: dict[str, Callable[..., Recipe]] = {function.__name__: function for function in (
    direct, chain_of_thought, chain_of_draft, plan_and_solve, least_to_most, few_shot, native, semi_structured,
    self_consistency, tree_of_thought, self_ask, ircot, react, chain_of_verification, reflect,
    quote_first, table_first, program_aided, sufficient, supported, search_only)}
ANSWERING = tuple(name for name in REASONING if name != SEARCH_ONLY)
RETRIEVAL: dict[str, Callable[..., Gathering]] = {function.__name__: function for function in (
    none, once, multi_query, hyde, step_back, decompose, corrective, iterative, adaptive)}
