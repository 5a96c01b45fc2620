"""Every strategy of ragbed under the name that settings and tables use, including those of its guests."""
from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator
from typing import TypeVar

from ragbed.guests import load, own_entries
from ragbed.strategies.history import none as as_asked
from ragbed.strategies.history import rewrite, window
from ragbed.strategies.reasoning.direct import chain_of_draft, chain_of_thought, direct, plan_and_solve, search_only
from ragbed.strategies.reasoning.few_shot import few_shot
from ragbed.strategies.reasoning.least_to_most import least_to_most
from ragbed.strategies.retrieval.decompose import decompose
from ragbed.strategies.retrieval.iterative import iterative
from ragbed.strategies.retrieval.once import none, once
from ragbed.strategies.types import Family, Gathering, Recipe, Standalone

_Returned = TypeVar("_Returned")
SEARCH_ONLY = "search_only"
UNAIDED = ("none", "once", "window")  # retrieval and history strategies that call no model
CRESTS = ("direct", "chain_of_thought", "chain_of_draft", "plan_and_solve", "least_to_most")  # in CReSt's paper


class Catalogue(UserDict[str, Callable[..., _Returned]]):
    """Maps names to the strategies of a family. It imports a guest's strategy on first use."""

    def __init__(self, family: Family, *functions: Callable[..., _Returned]) -> None:
        super().__init__({function.__name__: function for function in functions})
        self._guests = own_entries(family)

    def __missing__(self, name: str) -> Callable[..., _Returned]:
        made: Callable[..., _Returned] = load(self._guests[name])
        return made

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self._guests

    def __iter__(self) -> Iterator[str]:
        return iter({**self.data, **self._guests})

    def __len__(self) -> int:
        return len({**self.data, **self._guests})


REASONING: Catalogue[Recipe] = Catalogue("reasoning", direct, chain_of_thought, chain_of_draft, plan_and_solve,
                                         least_to_most, few_shot, search_only)
ANSWERING = tuple(name for name in REASONING if name != SEARCH_ONLY)
RETRIEVAL: Catalogue[Gathering] = Catalogue("retrieval", none, once, decompose, iterative)
HISTORY: Catalogue[Standalone] = Catalogue("history", as_asked, window, rewrite)
