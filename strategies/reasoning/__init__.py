"""How evidence becomes an answer."""

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

__all__ = [
    "chain_of_draft",
    "chain_of_thought",
    "chain_of_verification",
    "direct",
    "few_shot",
    "ircot",
    "least_to_most",
    "native",
    "plan_and_solve",
    "program_aided",
    "quote_first",
    "react",
    "reflect",
    "search_only",
    "self_ask",
    "self_consistency",
    "semi_structured",
    "sufficient",
    "supported",
    "table_first",
    "tree_of_thought",
]
