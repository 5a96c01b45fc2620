"""Search with queries that a model writes, once or repeatedly in one conversation that ends with the answer.

The conversation is append-only, so serving engines compute each part once. It begins with the first documents, the
rules and the question. Each iteration adds the model's reply and the new passages that a search for it found. The call
for the answer comes last. `Lockstep` plays several recipes together and performs equal actions once.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from ragbed.strategies.answering import answer, ask, ask_for_answer_in, draft, form_instruction
from ragbed.strategies.parts.merging import concatenate, new_passages
from ragbed.strategies.prompting import (
    fill,
    fill_untrusted,
    neutralize_turns,
    show_documents,
    shown_numbers,
    system_message,
    template,
)
from ragbed.strategies.reading import fold, read_answer
from ragbed.strategies.types import (
    Action,
    Asked,
    Contexts,
    Decision,
    Draft,
    End,
    Evidence,
    Failure,
    Gathering,
    Generate,
    Message,
    Recipe,
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
_IDLE = 2  # searching ends after this many iterations without new evidence


@dataclass(frozen=True, slots=True)
class SearchState:
    """The results of a question's searches so far."""

    evidence: Evidence = ()  # each passage once, in the order in which it was found
    texts: tuple[str, ...] = ()  # result of each query of the last iteration, as the conversation shows it
    fresh: int = 0  # number of new passages in the last iteration
    over: str = ""  # why searching ends, for the trace; empty while it continues
    queries: tuple[str, ...] = ()  # queries so far, folded
    idle: int = 0  # number of iterations in a row, up to the last, without new passages


Finding = Generator[Asked, Any, SearchState]
Otherwise = Callable[[SearchState], Generator[Asked, Any, Draft | None]]


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """How a strategy reads a reply."""

    kept: str  # the part of the reply that stays in the conversation
    query: str = ""  # the next search; empty if the reply asks for none
    why: str = ""  # why searching ends if there is no query, for the trace


def start(task: Task, found: SearchState, name: str) -> tuple[Message, ...]:
    """Return the first messages of a conversation, with the instruction `prompts/<name>.md`."""
    return ask(task, template(name), found.evidence, name, rules=True).messages


def search_new(task: Task, found: SearchState, queries: Sequence[str]) -> Finding:
    """Search for the queries that are new, all at once, and return the new state with the text to show for each query.

    If the task fixes the evidence (`placed`), nothing is searched. If every query is old, the iterations end.
    """
    asked = list(dict.fromkeys(query for query in queries if fold(query) not in found.queries))
    known, repeated = (*found.queries, *map(fold, asked)), template("asked_before")
    if not asked:
        return replace(found, texts=(repeated,) * len(queries), fresh=0, over="it asks for what was asked before")
    if task.placed:
        return replace(found, texts=(template("all_shown"),) * len(queries), queries=known)
    evidence, texts = found.evidence, {}
    lists: list[Evidence] = yield from gather_each(task, asked, Task.gather)
    for query, one in zip(asked, lists, strict=True):
        if fresh := new_passages(evidence, one):  # shown like the first documents
            texts[query] = show_documents(task, fresh).removesuffix("\n\n")
        elif one:
            known_numbers = ": " + ", ".join(f"[{passage.number}]" for passage in one) if task.separators else ""
            texts[query] = fill("nothing_new", numbers=known_numbers)
        else:
            texts[query] = template("nothing_found")
        evidence = concatenate((evidence, one))
    count = len(evidence) - len(found.evidence)
    idle = 0 if count else found.idle + 1
    over = f"{_IDLE} iterations in a row brought nothing new" if idle >= _IDLE else ""
    return SearchState(evidence, tuple(texts.pop(query, repeated) for query in queries), count, over, known, idle)


def converse(task: Task, iterations: int, name: str, read: Callable[[str], ReadTurn], stop: tuple[str, ...] = (),
             otherwise: Otherwise | None = None) -> Recipe:
    """Search for the question, let the model ask for more searches until it has enough, then ask for the answer.

    Under the rules `closed-book`, there is only the call for the answer.

    Args:
        iterations: maximum number of further searches.
        name: purpose of the calls; the prompts are `<name>_first` and `<name>_next`.
        read: reads a reply.
        stop: stop sequences of the model's replies.
        otherwise: an alternative to try after the first search; it returns None if it cannot be used.
    """
    if task.rules == "closed-book":
        return (yield from answer(task, "chain_of_thought", (), "no_search"))
    found = SearchState((yield from task.gather(task.question)), queries=(fold(task.question),))
    if otherwise and (drafted := (yield from otherwise(found))):
        return drafted
    talk, brought = start(task, found, f"{name}_first"), ""
    for iteration in range(iterations):
        if iteration:
            talk = (*talk, Message("user", (f"{brought}\n\n", template(f"{name}_next"))))
        reply: Reply = yield Generate(talk, name, shown_numbers(task, found.evidence), stop=stop)
        turn = read(reply.text)
        talk, brought = (*talk, assistant_message(turn.kept)), ""
        if not turn.query:
            yield Decision("stops", turn.why)
            break
        found = yield from search_new(task, found, [turn.query])
        brought = found.texts[0]
        yield next_step(task, iteration, iterations, found)
        if found.over:
            break
    return (yield from final_answer(task, talk, found.evidence, brought))


def next_step(task: Task, iteration: int, iterations: int, found: SearchState) -> Decision:
    """Return a decision for the trace: that the next iteration begins, or why not."""
    if found.over:
        return Decision("stops", found.over)
    brought = "asks on: all evidence is placed" if task.placed else \
        f"brought {found.fresh} new passage{'s' * (found.fresh != 1)}"
    last = iteration + 1 == iterations
    return Decision("stops" if last else "goes on", f"iteration {iteration + 1} of {iterations} {brought}")


def final_answer(task: Task, talk: tuple[Message, ...], evidence: Evidence, brought: str = "",
              tools: tuple[Mapping[str, Any], ...] = ()) -> Recipe:
    """End the conversation with the call for the answer, and return the draft.

    Args:
        brought: result of the last search, if no message shows it yet.
        tools: tools of the conversation. They stay in the prompt although none may be called: servers put them
            first, so without them the cached beginning of the prompt would be lost.
    """
    last = fill("iterations_answer", question=task.question) + form_instruction(task)
    parts = (f"{brought}\n\n", last) if brought else (last,)
    call = ask_for_answer_in(task, (*talk, Message("user", parts)), evidence)
    call = replace(call, tools=tools, tool_choice="none" if tools else "auto")
    return (yield from draft(call, task, last=True))


def assistant_message(text: str, longest: int = _MAX_TURN) -> Message:
    """Return a reply as the conversation keeps it: shortened, without turn marks, and never empty."""
    return Message("assistant", (neutralize_turns(text.strip()[:longest]) or "(nothing)",))
