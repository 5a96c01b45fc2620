"""Jobs, each one question in one cell, sorted so that servers can reuse cached prompt prefixes."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, groupby, islice
from operator import attrgetter
from typing import NamedTuple

from ragbed.experiments.analysis.replicates import Answers
from ragbed.experiments.cells import PIPELINE, Cell
from ragbed.experiments.metrics import ScoredRow
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.resources import Resources
from ragbed.strategies.prompting import show_documents
from ragbed.strategies.token_estimates import estimate_tokens
from ragbed.strategies.types import Layout, Passage

SAMPLE = 100  # estimates use this many questions, evenly spread
_GROUP = 16  # jobs are reordered within groups of this many questions, so that questions finish early


@dataclass(frozen=True, slots=True)
class Job:
    """One question in one cell; `place` is the cell's position in the run."""

    cell: Cell
    place: int
    question: Question


class Prefix(NamedTuple):
    """The beginning of a prompt.

    Attributes:
        first: identifies the shortest prefix worth caching, which ends after the first passage.
        rest: identifies all passages. Sorting by it puts prompts with long common prefixes next to each other.
    """

    first: tuple[object, ...]
    rest: tuple[tuple[str, str, int, int], ...] = ()


def list_jobs(cells: Sequence[Cell], questions: Iterable[Question]) -> Iterator[Job]:
    """Yield every job, by question, then by cell."""
    return (Job(cell, place, question) for question in questions for place, cell in enumerate(cells))


def group_results(results: Iterable[Result]) -> dict[str, dict[str, ScoredRow]]:
    """Return the results, without their traces, by cell and question."""
    answers: dict[str, dict[str, ScoredRow]] = defaultdict(dict)
    for result in results:
        answers[result.cell][result.question] = result.model_copy(update={"trace": ()})
    return answers


def jobs_left(plan: Plan, done: Collection[tuple[str, str]], answers: Answers) -> list[Job]:
    """Return the jobs without a record. If the run has a schedule, return only those that are due."""
    due = plan.schedule.due(answers) if plan.schedule else None
    return [job for job in list_jobs(plan.cells, plan.asked.values())
            if (pair := (job.cell.id, job.question.id)) not in done and (due is None or (
                pair in due and job.question.id not in answers.get(job.cell.id, {})))]


def group_turns(jobs: Sequence[Job], by_cell: bool) -> list[list[Job]]:
    """Return the jobs as lists to run one after the other: one list, or one for each cell.

    With `by_cell`, only one retriever uses the machine at a time, so that search times are comparable.
    """
    if not by_cell:
        return [list(jobs)]
    return [list(turn) for _, turn in groupby(sorted(jobs, key=attrgetter("place")), attrgetter("place"))]


def sort_by_prefix(jobs: Iterable[Job], prefix: Callable[[Job], Prefix]) -> Iterator[Job]:
    """Yield jobs, given in question order, so that those whose prompts begin alike follow each other.

    Prompts begin alike for questions about one document, and for repeats and seeds with the same evidence.
    `least_to_most` goes first: its first prompt lacks the rules, which the others share. Jobs move only within groups
    of a few questions.
    """
    questions = (list(group) for _, group in groupby(jobs, key=lambda job: job.question.id))
    while group := list(chain.from_iterable(islice(questions, _GROUP))):
        begun = [(prefix(job), job) for job in group]
        turns: dict[tuple[object, ...], int] = {}
        for begins, _ in begun:
            turns.setdefault(begins.first, len(turns))
        begun.sort(key=lambda one: (turns[one[0].first], one[0].rest,
                                    not one[1].cell.reasoning.startswith("least_to_most")))
        yield from (job for _, job in begun)


def prompt_prefix(job: Job, layout: Layout, resources: Resources) -> Prefix:
    """Return the beginning of the job's prompts, as far as it is known before a search. With the layout `as_published`,
    rules, instruction and question precede the documents, so only repeats and seeds share a beginning."""
    cell, question = job.cell, job.question.id
    if layout == "as_published":
        return Prefix((question, cell.rules, cell.reasoning, cell.show))
    if cell.searched:
        return Prefix((question, cell.finder, cell.format, cell.retrieval, cell.perturbation, cell.seed))
    placed = resources.placed_if_known(cell, job.question)
    passages = tuple((one.document, one.format, one.start, one.end) for one in placed)
    return Prefix((cell.separators, *passages[0][:3]) if passages else (question,), passages)


def sample_evenly(questions: Sequence[Question]) -> Sequence[Question]:
    """Return at most `SAMPLE` of the questions, evenly spread."""
    whole = len(questions)
    return questions if whole <= SAMPLE else [questions[place * whole // SAMPLE] for place in range(SAMPLE)]


def prefix_notes(plan: Plan, resources: Resources) -> Iterator[str]:
    """Yield a note if several strategies send the same documents with the layout `as_published`. It says how many
    prompt tokens `documents_first` would save on a server with a prefix cache."""
    if plan.settings.layout != "as_published":
        return
    cells = [(cell, plan.tasks(cell)) for cell in plan.cells if not cell.searched and cell.reasoning != PIPELINE]
    questions, sent, needed = sample_evenly(plan.benchmark.questions), 0, 0
    for question in questions:
        prompts: dict[tuple[str, str], set[tuple[object, ...]]] = defaultdict(set)
        for cell, tasks in cells:
            evidence = tuple(map(Passage, count(1), resources.placed_if_known(cell, question)))
            documents = show_documents(tasks.whole(question), evidence) if evidence else ""
            prompts[cell.model, documents].add(prompt_prefix(Job(cell, 0, question), "as_published", resources).first)
        sent += sum(estimate_tokens(documents) * len(begun) for (_, documents), begun in prompts.items())
        needed += sum(estimate_tokens(documents) for _, documents in prompts)
    if sent > needed:
        factor = len(plan.benchmark.questions) / len(questions)
        yield ("layout: as_published puts documents last, so strategies share no prompt prefix; with a "
               f"prefix cache, documents_first would save the server about {round((sent - needed) * factor):,} of "
               f"{round(sent * factor):,} prompt tokens of documents")
