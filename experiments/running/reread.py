"""The replies of a finished run, read as this ragbed reads them: no model is asked, and nothing is searched.

Strategies that are none of ragbed's are played where the user allows it and their source is the recorded one, since
reading a run executes no code that came with it; and those with worked examples, while the file of these is unchanged.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agents.database import text_hash
from agents.replies import parse_object
from agents.scripted import drive
from agents.types import Answer, CallOutcome
from documents.errors import RecipeMismatch, SettingsError
from documents.types import Chunk
from experiments.metrics.matching import refused_as_published
from experiments.question import Question
from experiments.record import Result, StoredStep
from experiments.running.gold import PLACING
from experiments.running.plan import Plan
from experiments.runs.manifest import manifest_of
from experiments.runs.store import RunFolder
from strategies.settings.choosing import Strategy
from strategies.settings.plugins import file_of
from strategies.settings.source import hash_of
from strategies.types import Failure, Generate, Reply, Search


def hindrance(strategy: Strategy, recorded: Mapping[str, str], allowed: Collection[str]) -> str:
    """Say why a strategy of a run is not played; empty where it may be.

    Args:
        recorded: the hashes of sources by how settings name them, as the run's manifest has them.
        allowed: the files that the user says may be executed, named likewise.
    """
    if not strategy.has_sources:
        return ""
    for kind in strategy.files:
        place = file_of(kind)
        assert place is not None
        if kind not in allowed:
            return f"{kind} is code that came with the run; read it, then give --plugin {kind} to execute it"
        try:
            if hash_of(place[0]) != recorded.get(kind):
                return f"{kind} is not the file that the run was made with"
        except SettingsError as error:
            return str(error)
    try:
        changed = [kind for kind, content in strategy.loaded().sources.items() if content != recorded.get(kind)]
    except SettingsError as error:
        return str(error)
    return f"{changed[0]} is not what the run was made with" if changed else ""


class Rereader:
    """Plays the recipes of a run over what their actions brought, as the records have it.

    Args:
        plugins: the files that the user says may be executed, as the settings name them.

    Attributes:
        hindered: why the replies of a cell are not read again, by its id.
    """

    def __init__(self, folder: RunFolder, plan: Plan, plugins: Collection[str] = ()) -> None:
        self._text = folder.database.text
        self._limits = plan.settings.limits
        recorded = manifest_of(folder.path).sources
        self.hindered = {cell.id: why for cell in plan.cells if (why := next(filter(None, (
            hindrance(one, recorded, plugins) for one in plan.tasks(cell).strategies)), ""))}
        played = [cell for cell in plan.cells if cell.id not in self.hindered]
        plan = plan.loading({"reasoning": {cell.reasoning for cell in played},
                             "retrieval": {cell.retrieval for cell in played if cell.retrieval}})
        self._tasks = {cell.id: plan.tasks(cell) for cell in played}

    def read(self, result: Result, question: Question) -> Result | None:
        """Return the result as its replies are read now; None where the strategy would have asked something else.

        Args:
            result: with its trace.
        """
        if result.outcome == "budget" and result.cell not in self.hindered:
            return result  # whatever the replies say; and what was left of its cell's limits is not recorded
        answer = None if result.cell in self.hindered else self._answer(result, question)
        if answer is None:
            return None
        placed = tuple(note for note in result.notes if note.partition(":")[0] in PLACING)
        return result.model_copy(update={
            "outcome": answer.outcome, "text": answer.text, "refused": answer.refused,
            "refused_as_published": refused_as_published(answer.text), "cited": answer.cited,
            "invalid_citations": answer.invalid_citations, "tagged": answer.tagged,
            "notes": (*answer.notes, *placed), "failure": answer.failure, "figures": dict(answer.figures)})

    def _answer(self, result: Result, question: Question) -> Answer | None:
        tasks = self._tasks[result.cell]
        chunks = self._chunks(result)
        steps = (step for step in result.trace if step.kind != "decision")  # which the recipe makes anew

        def found(search: Search) -> Sequence[Chunk] | Failure:
            step = next(steps, None)
            if step is None or step.query != search.query:
                raise RecipeMismatch("another search is recorded")
            return step.failure or [chunks[number] for number in step.found]

        def replied(call: Generate) -> CallOutcome:
            step = next(steps, None)
            if step is None or not _same(call, step):
                raise RecipeMismatch("another call is recorded")
            return _outcome(step, call)

        try:
            return drive(tasks.reasoning, tasks.whole(question), lambda calls: list(map(replied, calls)),
                         lambda searches: list(map(found, searches)), self._limits)
        except RecipeMismatch:
            return None

    def _chunks(self, result: Result) -> dict[int, Chunk]:
        return {passage.number: Chunk(passage.chunk, passage.document, passage.format, passage.start, passage.end,
                                      self._text(passage.text), pages=passage.pages) for passage in result.evidence}


def _same(call: Generate, step: StoredStep) -> bool:
    """Whether the call has the messages that were sent, with the tools that they call."""
    return [(message.role, tuple(map(text_hash, message.parts)), message.call_id, *map(dict, message.tool_calls))
            for message in call.messages] == [
        (message.role, message.parts, message.call_id, *message.tool_calls) for message in step.messages]

def _outcome(step: StoredStep, call: Generate) -> CallOutcome:
    parsed = parse_object(step.text) if call.schema is not None else None
    reply = Reply(step.text, step.reasoning, step.tool_calls, parsed, step.usage, step.finish_reason)
    return CallOutcome(step.key or "", step.failure or reply, replayed=True)
