"""List every strategy of the project under the name that settings and tables use."""
from __future__ import annotations

from collections.abc import Callable

from strategies.history import none as as_asked
from strategies.history import rewrite, window
from strategies.reasoning.chain_of_draft import chain_of_draft
from strategies.reasoning.chain_of_thought import chain_of_thought
from strategies.reasoning.chain_of_verification import chain_of_verification
from strategies.reasoning.direct import direct
from strategies.reasoning.few_shot import few_shot
from strategies.reasoning.ircot import ircot
from strategies.reasoning.least_to_most import least_to_most
from strategies.reasoning.native import native
from strategies.reasoning.plan_and_solve import plan_and_solve
from strategies.reasoning.program_aided import program_aided
from strategies.reasoning.quote_first import quote_first
from strategies.reasoning.react import react
from strategies.reasoning.reflect import reflect
from strategies.reasoning.search_only import search_only
from strategies.reasoning.self_ask import self_ask
from strategies.reasoning.self_consistency import self_consistency
from strategies.reasoning.semi_structured import semi_structured
from strategies.reasoning.sufficient import sufficient
from strategies.reasoning.supported import supported
from strategies.reasoning.table_first import table_first
from strategies.reasoning.tree_of_thought import tree_of_thought
from strategies.retrieval.adaptive import adaptive
from strategies.retrieval.corrective import corrective
from strategies.retrieval.decompose import decompose
from strategies.retrieval.hyde import hyde
from strategies.retrieval.iterative import iterative
from strategies.retrieval.multi_query import multi_query
from strategies.retrieval.none import none
from strategies.retrieval.once import once
from strategies.retrieval.step_back import step_back
from strategies.types import Gathering, Recipe, Standalone

SEARCH_ONLY = "search_only"
UNAIDED = ("none", "once", "window")  # the retrieval and history strategies that ask no model
CRESTS = ("direct", "chain_of_thought", "chain_of_draft", "plan_and_solve", "least_to_most")  # of CReSt's paper
REASONING: dict[str, Callable[..., Recipe]] = {function.__name__: function for function in (
    direct, chain_of_thought, chain_of_draft, plan_and_solve, least_to_most, few_shot, native, semi_structured,
    self_consistency, tree_of_thought, self_ask, ircot, react, chain_of_verification, reflect,
    quote_first, table_first, program_aided, sufficient, supported, search_only)}
ANSWERING = tuple(name for name in REASONING if name != SEARCH_ONLY)
RETRIEVAL: dict[str, Callable[..., Gathering]] = {function.__name__: function for function in (
    none, once, multi_query, hyde, step_back, decompose, corrective, iterative, adaptive)}
HISTORY: dict[str, Callable[..., Standalone]] = {function.__name__: function for function in (
    as_asked, window, rewrite)}
