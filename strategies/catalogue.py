"""Every strategy of ragbed under the name that settings and tables use."""
from __future__ import annotations

from collections.abc import Callable

from ragbed.strategies.history import none as as_asked
from ragbed.strategies.history import rewrite, window
from ragbed.strategies.reasoning.chain_of_draft import chain_of_draft
from ragbed.strategies.reasoning.chain_of_thought import chain_of_thought
from ragbed.strategies.reasoning.chain_of_verification import chain_of_verification
from ragbed.strategies.reasoning.direct import direct
from ragbed.strategies.reasoning.few_shot import few_shot
from ragbed.strategies.reasoning.ircot import ircot
from ragbed.strategies.reasoning.least_to_most import least_to_most
from ragbed.strategies.reasoning.native import native
from ragbed.strategies.reasoning.plan_and_solve import plan_and_solve
from ragbed.strategies.reasoning.program_aided import program_aided
from ragbed.strategies.reasoning.quote_first import quote_first
from ragbed.strategies.reasoning.react import react
from ragbed.strategies.reasoning.reflect import reflect
from ragbed.strategies.reasoning.search_only import search_only
from ragbed.strategies.reasoning.self_ask import self_ask
from ragbed.strategies.reasoning.self_consistency import self_consistency
from ragbed.strategies.reasoning.semi_structured import semi_structured
from ragbed.strategies.reasoning.sufficient import sufficient
from ragbed.strategies.reasoning.supported import supported
from ragbed.strategies.reasoning.table_first import table_first
from ragbed.strategies.reasoning.tree_of_thought import tree_of_thought
from ragbed.strategies.retrieval.adaptive import adaptive
from ragbed.strategies.retrieval.corrective import corrective
from ragbed.strategies.retrieval.decompose import decompose
from ragbed.strategies.retrieval.hyde import hyde
from ragbed.strategies.retrieval.iterative import iterative
from ragbed.strategies.retrieval.multi_query import multi_query
from ragbed.strategies.retrieval.none import none
from ragbed.strategies.retrieval.once import once
from ragbed.strategies.retrieval.step_back import step_back
from ragbed.strategies.types import Gathering, Recipe, Standalone

SEARCH_ONLY = "search_only"
UNAIDED = ("none", "once", "window")  # retrieval and history strategies that call no model
CRESTS = ("direct", "chain_of_thought", "chain_of_draft", "plan_and_solve", "least_to_most")  # in CReSt's paper
REASONING: dict[str, Callable[..., Recipe]] = {function.__name__: function for function in (
    direct, chain_of_thought, chain_of_draft, plan_and_solve, least_to_most, few_shot, native, semi_structured,
    self_consistency, tree_of_thought, self_ask, ircot, react, chain_of_verification, reflect,
    quote_first, table_first, program_aided, sufficient, supported, search_only)}
ANSWERING = tuple(name for name in REASONING if name != SEARCH_ONLY)
RETRIEVAL: dict[str, Callable[..., Gathering]] = {function.__name__: function for function in (
    none, once, multi_query, hyde, step_back, decompose, corrective, iterative, adaptive)}
HISTORY: dict[str, Callable[..., Standalone]] = {function.__name__: function for function in (
    as_asked, window, rewrite)}
