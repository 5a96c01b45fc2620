"""How evidence becomes an answer."""

from strategies.reasoning.chain_of_draft import chain_of_draft
from strategies.reasoning.chain_of_thought import chain_of_thought
from strategies.reasoning.direct import direct
from strategies.reasoning.ircot import ircot
from strategies.reasoning.least_to_most import least_to_most
from strategies.reasoning.plan_and_solve import plan_and_solve
from strategies.reasoning.react import react
from strategies.reasoning.search_only import search_only
from strategies.reasoning.self_ask import self_ask

__all__ = [
    "chain_of_draft",
    "chain_of_thought",
    "direct",
    "ircot",
    "least_to_most",
    "plan_and_solve",
    "react",
    "search_only",
    "self_ask",
]
