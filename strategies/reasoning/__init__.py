"""How evidence becomes an answer."""

from strategies.reasoning.chain_of_draft import chain_of_draft
from strategies.reasoning.chain_of_thought import chain_of_thought
from strategies.reasoning.direct import direct
from strategies.reasoning.few_shot import few_shot
from strategies.reasoning.ircot import ircot
from strategies.reasoning.least_to_most import least_to_most
from strategies.reasoning.native import native
from strategies.reasoning.plan_and_solve import plan_and_solve
from strategies.reasoning.react import react
from strategies.reasoning.search_only import search_only
from strategies.reasoning.self_ask import self_ask
from strategies.reasoning.self_consistency import self_consistency
from strategies.reasoning.semi_structured import semi_structured
from strategies.reasoning.sufficient import sufficient
from strategies.reasoning.supported import supported
from strategies.reasoning.tree_of_thought import tree_of_thought

__all__ = [
    "chain_of_draft",
    "chain_of_thought",
    "direct",
    "few_shot",
    "ircot",
    "least_to_most",
    "native",
    "plan_and_solve",
    "react",
    "search_only",
    "self_ask",
    "self_consistency",
    "semi_structured",
    "sufficient",
    "supported",
    "tree_of_thought",
]
