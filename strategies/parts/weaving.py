"""Several recipes in lockstep: what they ask for goes out together, and what is equal is performed once."""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from strategies.types import Action, Asked, Decision, Failure, Generate, Reply, Search

End = TypeVar("End")
Rewrite = Callable[[int, Generate], Generate]


def as_it_is(place: int, call: Generate) -> Generate:
    """The call as its recipe made it."""
    return call


@dataclass(slots=True)
class Loom:
    """Weaves recipes, or gatherings, and remembers across weaves what was performed.

    In each round the searches of all go out as one list, and when none wants a search, the calls; so those that are
    ahead wait, and there are as few rounds as can be. Equal actions are performed once, and each that asks for one
    gets its result: searches, and calls that are equal in everything, the sample too. A failure that a recipe asked to
    see is not remembered: it may be tried again.

    Attributes:
        rewrite: each call, with the number of its recipe from 0, before it goes out.
        tokens: of prompts and replies so far.
    """

    rewrite: Rewrite = as_it_is
    tokens: int = 0
    _woven: int = 0
    _known: list[tuple[Action, Any]] = field(default_factory=list)

    def weave(self, recipes: Sequence[Generator[Asked, Any, End]]) -> Generator[Asked, Any, list[End]]:
        """Play the recipes to their ends, and return what they return, in order.

        Decisions pass through; of several recipes' each begins with the number of the recipe that made it, from 1. A
        recipe that breaks a limit ends the question as it would alone.
        """
        strands = [_Strand(self._woven + place, recipe) for place, recipe in enumerate(recipes)]
        self._woven += len(strands)
        try:
            for strand in strands:
                yield from self._go_on(strand, None)
            while waiting := [strand for strand in strands if strand.pending]:
                served = [strand for strand in waiting if isinstance(strand.pending[0], Search)] or waiting
                yield from self._perform([action for strand in served for action in strand.pending])
                for strand in served:
                    results = [self._result(action) for action in strand.pending]
                    yield from self._go_on(strand, results if strand.listed else results[0])
                self._known = [(one, result) for one, result in self._known if not isinstance(result, Failure)]
        finally:
            for strand in strands:
                strand.recipe.close()
        return [end for strand in strands for end in strand.ends]

    def _go_on(self, strand: _Strand[End], value: Any) -> Generator[Asked, Any, None]:
        """Send a recipe a result, and run it up to its next action; hand on what needs no performing."""
        strand.pending = []
        try:
            asked = strand.recipe.send(value)
            while asked == [] or isinstance(asked, Decision):
                if isinstance(asked, Decision) and self._woven > 1:
                    asked = strand.numbered(asked)
                asked = strand.recipe.send((yield asked))
        except StopIteration as end:
            strand.ends.append(end.value)
            return
        strand.listed = isinstance(asked, list)
        strand.pending = [one if isinstance(one, Search) else self.rewrite(strand.place, one)
                          for one in (asked if isinstance(asked, list) else [asked])]

    def _perform(self, actions: Sequence[Action]) -> Generator[Asked, Any, None]:
        wanted: list[Action] = []
        for action in actions:
            if not any(_same(action, other) for other in (*wanted, *(known for known, _ in self._known))):
                wanted.append(action)
        if wanted:
            results = yield wanted
            self.tokens += sum(one.usage.prompt_tokens + one.usage.completion_tokens for one in results
                               if isinstance(one, Reply))
            self._known += zip(wanted, results, strict=True)

    def _result(self, action: Action) -> Any:
        return next(result for known, result in self._known if _same(known, action))


@dataclass(slots=True)
class _Strand(Generic[End]):
    """One recipe and what it asks for.

    Attributes:
        listed: whether it asks for a list.
        ends: what it returned, once it has.
    """

    place: int
    recipe: Generator[Asked, Any, End]
    pending: list[Action] = field(default_factory=list)
    listed: bool = False
    ends: list[End] = field(default_factory=list)

    def numbered(self, decision: Decision) -> Decision:
        return replace(decision, why=f"{self.place + 1}: {decision.why}" if decision.why else str(self.place + 1))


def _same(one: Action, other: Action) -> bool:
    """Whether two actions are equal; samples, in which most differ, are compared before long messages."""
    return getattr(one, "sample", None) == getattr(other, "sample", None) and one == other
