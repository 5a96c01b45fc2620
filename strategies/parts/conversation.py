"""Search with queries that a model writes, and keep its replies in a conversation.

`Lockstep` plays several recipes together and performs equal actions once.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from ragbed.strategies.prompting import fill_untrusted, neutralize_turns, system_message
from ragbed.strategies.reading import read_answer
from ragbed.strategies.types import (
    Action,
    Asked,
    Contexts,
    Decision,
    End,
    Evidence,
    Failure,
    Gathering,
    Generate,
    Message,
    Reply,
    Search,
    Task,
    ToolCall,
)

Rewrite = Callable[[int, Generate], Generate]


@dataclass(slots=True)
class Lockstep:
    """Plays recipes in lockstep, and remembers performed actions from one run to the next.

    Each round sends the searches of all recipes as one list or, if there are none, their calls. Equal searches are
    performed once, and so are calls that are equal in every field, including `sample`. Failures that a recipe asked to
    see are not remembered, so they can be retried.
    """

    rewrite: Rewrite = lambda place, call: call  # changes a call, given the number (from 0) of its recipe
    tokens: int = 0  # tokens of prompts and replies so far
    _played: int = 0
    _known: dict[Hashable, list[tuple[Action, Any]]] = field(default_factory=dict)

    def run(self, recipes: Sequence[Generator[Asked, Any, End]]) -> Generator[Asked, Any, list[End]]:
        """Play the recipes, and return their results in order. Decisions pass through. With several recipes, each
        decision is prefixed with its recipe's number, from 1. A recipe that breaks a limit ends the question, as it
        would alone."""
        players = [_Player(self._played + place, recipe) for place, recipe in enumerate(recipes)]
        self._played += len(players)
        try:
            for player in players:
                yield from self._go_on(player, None)
            while waiting := [player for player in players if player.pending]:
                kind = min((type(player.pending[0]) for player in waiting), key=_ORDER.index)
                served = [player for player in waiting if isinstance(player.pending[0], kind)]
                yield from self._perform([action for player in served for action in player.pending])
                for player in served:
                    results = [self._results(action)[0] for action in player.pending]
                    yield from self._go_on(player, results if player.listed else results[0])
                self._known = {key: [(action, result) for action, result in known if not isinstance(result, Failure)]
                               for key, known in self._known.items()}
        finally:
            for player in players:
                player.recipe.close()
        return [end for player in players for end in player.ends]

    def _go_on(self, player: _Player[End], value: Any) -> Generator[Asked, Any, None]:
        """Send a recipe a result, and run it up to its next action. Pass its decisions on."""
        player.pending = []
        try:
            asked = player.recipe.send(value)
            while asked == [] or isinstance(asked, Decision | Contexts):
                if isinstance(asked, Decision) and self._played > 1:
                    number = str(player.place + 1)
                    asked = replace(asked, why=f"{number}: {asked.why}" if asked.why else number)
                asked = player.recipe.send((yield asked))
        except StopIteration as end:
            player.ends.append(end.value)
            return
        player.listed = isinstance(asked, list)
        player.pending = [self.rewrite(player.place, replace(one, answers=None)) if isinstance(one, Generate) else one
                          for one in (asked if isinstance(asked, list) else [asked])]

    def _perform(self, actions: Sequence[Action]) -> Generator[Asked, Any, None]:
        wanted: list[Action] = []
        alike: dict[Hashable, list[Action]] = {}
        for action in actions:
            others = alike.setdefault(_key(action), [])
            if action not in others and not self._results(action):
                others.append(action)
                wanted.append(action)
        if wanted:
            results = yield wanted
            self.tokens += sum(one.usage.tokens for one in results if isinstance(one, Reply))
            for action, result in zip(wanted, results, strict=True):
                self._known.setdefault(_key(action), []).append((action, result))

    def _results(self, action: Action) -> list[Any]:
        return [result for known, result in self._known.get(_key(action), ()) if known == action]


_ORDER = (Search, ToolCall, Generate)  # actions that are performed first


@dataclass(slots=True)
class _Player(Generic[End]):
    place: int
    recipe: Generator[Asked, Any, End]
    pending: list[Action] = field(default_factory=list)
    listed: bool = False  # whether it yielded its actions as a list
    ends: list[End] = field(default_factory=list)  # its result, once it has returned


def _key(action: Action) -> Hashable:
    """Return a hashable key that equal actions share. It leaves out schemas, tools and arguments, which cannot be
    hashed."""
    if isinstance(action, Search):
        return action
    if isinstance(action, ToolCall):
        return action.tool
    return action.sample, action.purpose, tuple(message.parts for message in action.messages)


_MAX_QUERY = 2_000  # longest query, in characters; embedders read less


def ask_without_documents(name: str, purpose: str, **fields: str) -> Generate:
    """Build a call without evidence, with the prompt `prompts/<name>.md`. Its instruction is a separate message part,
    stored once for all queries."""
    text = fill_untrusted(name, **fields)
    cut = text.index("\n<")  # the start of the first mark
    return Generate((system_message(), Message("user", (text[:cut], text[cut:]))), purpose)


def reply_line(reply: Reply) -> str:
    """Return a reply without its thinking, on one line of at most 2,000 characters."""
    return " ".join(read_answer(reply.text)[0][:_MAX_QUERY].split())


def gather_each(task: Task, queries: Sequence[str], over: Callable[[Task, str], Gathering]) \
        -> Generator[Asked, Any, list[Evidence]]:
    """Gather evidence for each query, in order. Actions are sent together, and equal queries are gathered once."""
    distinct = list(dict.fromkeys(queries))
    found = dict(zip(distinct, (yield from Lockstep().run([over(task, query) for query in distinct])), strict=True))
    return [found[query] for query in queries]


_MAX_TURN = 2_000  # the conversation keeps this many characters of a reply


def assistant_message(text: str, longest: int = _MAX_TURN) -> Message:
    """Return a reply as the conversation keeps it: shortened, without turn marks, and never empty."""
    return Message("assistant", (neutralize_turns(text.strip()[:longest]) or "(nothing)",))
