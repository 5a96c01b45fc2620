"""Whether the strategies of a run may be played again: those that are none of ragbed's, which reading a run does not
execute, and those that show worked examples from a file, which may be gone or another.

Reading the replies of a finished run again, as this ragbed reads them: no model, and nothing is searched.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NoReturn

from agents.database import text_hash
from agents.outcome import CallOutcome
from agents.playback import Means, Playback
from agents.replies import parse_object
from agents.types import Answer
from documents.errors import RunError, SettingsError
from documents.types import Chunk
from experiments.metrics import refused_as_published
from experiments.question import Question, Scheme
from experiments.record import Result, StoredStep
from experiments.running.perturbing import PLACING
from experiments.running.tasks import Tasks
from experiments.runs.manifest import manifest_of
from experiments.runs.store import RunFolder
from experiments.settings import RunSettings
from experiments.settings.cells import Cell
from strategies.settings.choosing import Strategy
from strategies.settings.plugins import file_of
from strategies.settings.source import hash_of
from strategies.types import Exemplar, Generate, Reply


def hindrance(strategy: Strategy, recorded: Mapping[str, str], allowed: Collection[str]) -> str:
    """Why a strategy of a run is not played, in words; empty where it may be.

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
        changed = [kind for kind, content in strategy.sources.items() if content != recorded.get(kind)]
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

    def __init__(self, folder: RunFolder, settings: RunSettings, scheme: Scheme, cells: Sequence[Cell],
                 exemplars: tuple[Exemplar, ...] = (), plugins: Collection[str] = ()) -> None:
        self._text = folder.database.text
        self._limits = settings.limits
        self._tasks = {cell.id: Tasks(cell, settings, scheme, exemplars) for cell in cells}
        self.hindered = {id: why for id, tasks in self._tasks.items()
                         if (why := _hindered(folder, tasks, plugins))}

    def read(self, result: Result, question: Question) -> Result | None:
        """The result as its replies are read now; None where the strategy would have asked something else.

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
        play = Playback(tasks.whole(question), tasks.reasoning,
                        Means(_unused, _unused, _unused, _unused, self._limits))
        chunks = self._chunks(result)
        steps = (step for step in result.trace if step.kind != "decision")  # which the recipe makes anew
        while play.node != "finish" and not play.stop_over_budget():
            taken = _took(play, steps, chunks)
            if not taken:
                return None
        return play.answer()

    def _chunks(self, result: Result) -> dict[int, Chunk]:
        return {passage.number: Chunk(passage.chunk, passage.document, passage.format, passage.start, passage.end,
                                      self._text(passage.text), pages=passage.pages) for passage in result.evidence}


def _hindered(folder: RunFolder, tasks: Tasks, plugins: Collection[str]) -> str:
    """Why the strategies of a cell are not played; empty where they may be."""
    foreign = [one for one in tasks.strategies if one.has_sources]
    recorded = manifest_of(folder.path).sources if foreign else {}
    return next((why for one in foreign if (why := hindrance(one, recorded, plugins))), "")


def _took(play: Playback, steps: Iterator[StoredStep], chunks: Mapping[int, Chunk]) -> bool:
    """Whether the next recorded steps are those that the play asks for, which it then has taken."""
    if play.node == "search":
        found = [next(steps, None) for _ in play.searches()]
        if any(step is None or step.query != search.query
               for step, search in zip(found, play.searches(), strict=True)):
            return False
        known = [step for step in found if step is not None]
        failed = next((step.failure for step in known if step.failure), None)
        if failed is not None:
            play.take_lost(failed)
        else:
            play.take_found([[chunks[number] for number in step.found] for step in known])
        return True
    made = [(call, next(steps, None)) for call in play.calls()]
    asked = [_asked(step, call) for call, step in made if step is not None and _same(call, step)]
    if len(asked) < len(made):
        return False
    play.take_asked(asked)
    return True


def _same(call: Generate, step: StoredStep) -> bool:
    """Whether the call has the messages that were sent, with the tools that they call."""
    return [(message.role, tuple(map(text_hash, message.parts)), message.call_id, *map(dict, message.tool_calls))
            for message in call.messages] == [
        (message.role, message.parts, message.call_id, *message.tool_calls) for message in step.messages]


def _asked(step: StoredStep, call: Generate) -> CallOutcome:
    parsed = parse_object(step.text) if call.schema is not None else None
    reply = Reply(step.text, step.reasoning, step.tool_calls, parsed, step.usage, step.finish_reason)
    return CallOutcome(step.key or "", step.failure or reply, replayed=True)


def _unused(*given: object) -> NoReturn:
    raise RunError("reading again performs nothing")
