"""Checks before anything is begun: the benchmark has what a run shows, no worked example tells an answer, and what a
user should know before the first call.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ragbed.agents.settings import Context, min_tokens
from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.fields import with_references
from ragbed.experiments.cells import Cell
from ragbed.experiments.metrics import may_refuse
from ragbed.experiments.question import Benchmark
from ragbed.experiments.running.gold import missing_documents
from ragbed.experiments.settings import RunSettings
from ragbed.strategies.reading import fold
from ragbed.strategies.types import Exemplar

if TYPE_CHECKING:
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.resources import Resources

_INDEX = "name an index folder, as in retriever: {kind: dense, index: FOLDER}"


def check_divisible(plan: Plan) -> None:
    """Make sure that a shard of a run answers its questions as the whole run does. Raises SettingsError where what one
    question is asked depends on the answers to others."""
    if plan.shard is not None and plan.settings.race:
        raise SettingsError("--shard: with race the answers to all questions decide what is asked next, so that it "
                            "cannot be divided; leave one of the two out")


def check_conditions(settings: RunSettings, cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Make sure that the benchmark has what the conditions show. Raises SettingsError where it has no chunks, gold,
    whole documents or tables to show, or nothing to search; or the documents that the rules are about are never
    gathered; or no sub-questions to ask."""
    if "chain" not in benchmark.scheme.groups and (settings.filled == "gold" or settings.sub_answers == "in_prompt"):
        raise SettingsError(f"{'filled' if settings.filled == 'gold' else 'sub_answers'}: {benchmark.name} scores no "
                            "sub-questions, so none are asked; leave it out")
    shown = {cell.condition for cell in cells if not cell.change.table}
    if "provided" in shown and not any(question.provided for question in benchmark.questions):
        raise SettingsError(f"conditions: {benchmark.name} gives no chunks with its questions; use retrieved"
                            f"{' or full' if benchmark.has_whole else ''}")
    if any(cell.change.table for cell in cells) and not any(question.table for question in benchmark.questions):
        raise SettingsError(f"perturbations: {benchmark.name} has no tables to show in place of the documents; leave "
                            "table out")
    blind = [cell.rules for cell in cells if cell.retrieval == "none" and cell.rules in ("grounded", "reading")]
    if blind:
        raise SettingsError(f"retrieval: none gathers no documents under retrieved, and the rules {blind[0]} allow for "
                            "nothing else; use conditions: closed-book, or rules: open")
    nothing = benchmark.corpus is None and not benchmark.gives_chunks
    if nothing and any(cell.retriever is not None and cell.format is None for cell in cells):
        raise SettingsError(f"retriever: {benchmark.name} has no corpus to index; {_INDEX}")
    _check_negatives(cells, benchmark)
    _check_labelled(shown, cells, benchmark)


def _check_negatives(cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Negatives of a sort have to be there, and only chunks that questions bring can be searched among."""
    sorts = sorted({sort for question in benchmark.questions for one in question.mined.values() for sort in one.sorts})
    for cell in cells:
        if cell.change.sort and cell.change.sort not in sorts:
            there = f"there are: {', '.join(sorts)}" if sorts else \
                f"{benchmark.name} says of no negative how it was mined; see `ragbed negatives`"
            raise SettingsError(f"perturbations: {cell.perturbation}: no negative is of the sort {cell.change.sort}; "
                                f"{there}")
        if cell.change.pool and cell.format is not None:
            raise SettingsError(f"perturbations: {cell.perturbation}: an index is searched as it is; use negatives@N, "
                                "or leave the retriever's index out")


def _check_labelled(shown: Collection[str], cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Where only the gold says what is shown, some question has to have any; those without show no documents."""
    whole = "full" in shown and not benchmark.has_whole
    if any(cell.condition == "full" and cell.retriever is not None and cell.format is None for cell in cells):
        raise SettingsError(f"conditions: {benchmark.name} has no whole documents to show under full; leave full out, "
                            f"or {_INDEX}")
    if any(question.gold or not question.answerable for question in benchmark.questions):
        return
    if "gold" in shown:
        raise SettingsError(f"conditions: no question of {benchmark.name} says what its gold is; leave gold out")
    if whole:
        raise SettingsError(f"conditions: no question of {benchmark.name} says which document to show under full; "
                            "leave full out")


def check_ids(benchmark: Benchmark) -> None:
    """Make sure that no two questions have one id; BenchmarkError where two have."""
    seen: set[str] = set()
    for question in benchmark.questions:
        if question.id in seen:
            raise BenchmarkError(f"{benchmark.name}: two questions have the id {question.id!r}; give each its own")
        seen.add(question.id)


def check_exemplars(exemplars: tuple[Exemplar, ...], benchmark: Benchmark, where: str = "exemplars") -> None:
    """Make sure that no example, which settings have from `where`, tells a question's answer. Raises SettingsError
    where one asks one of the benchmark's questions or sub-questions, in whatever case and punctuation; or holds the
    words of one, and asks them over a document of that question's."""
    told = [_folded(exemplar.question) for exemplar in exemplars]
    for question in benchmark.questions if exemplars else ():
        filled = {with_references(text, question.sub_answers) for text in question.sub_questions}
        asked = {_folded(text) for text in (question.text, *question.sub_questions, *filled)}
        for place, (exemplar, words) in enumerate(zip(exemplars, told, strict=True), start=1):
            if words in asked or (any(_holds(words, text) for text in asked)
                                  and _shares_documents(exemplar, [*question.chunks, *benchmark.shared])):
                raise SettingsError(f"{where}: example {place} asks the question {question.id} of {benchmark.name}, "
                                    "or a part of it, and would tell its answer; take another example")


def _shares_documents(exemplar: Exemplar, chunks: Iterable[Chunk]) -> bool:
    """Whether a document of the example is one of the chunks, or a part of one, or the other way round."""
    contents = [_folded(chunk.content) for chunk in chunks]
    return any(_holds(content, shown) or _holds(shown, content)
               for shown in map(_folded, exemplar.documents) for content in contents)


def _holds(text: str, words: str) -> bool:
    return bool(words.strip()) and f" {words} " in f" {text} "


def _folded(text: str) -> str:
    return fold(text) or text.strip()


def preflight(plan: Plan, resources: Resources) -> Iterator[str]:
    """Notes, one line each, on what looks like a mistake and on what cannot be answered."""
    benchmark, cells, settings = plan.benchmark, plan.cells, plan.settings
    if benchmark.scheme.right is None and not settings.only_searches and "steps" not in benchmark.scheme.groups:
        yield (f"{benchmark.name} is scored by what is found alone; the model is asked all the same, and what it "
               "answers has no score; reasoning: search_only asks none")
    known = resources.indexed_documents()
    gold = [item for one in benchmark.questions if one.answerable for item in resources.indexed_gold(one)]
    if known and (missing := missing_documents(gold, known)):
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        yield (f"gold documents that are not among the documents asked over, so never found: "
               f"{', '.join(missing[:5])}{more}; are they mistyped?")
    asked, conditions = len(benchmark.questions), {cell.condition for cell in cells}
    nameless = sum(bool(question.whole) and not question.about for question in benchmark.questions)
    if nameless and "closed-book" in conditions:
        yield (f"closed-book: of {nameless} of {asked} questions neither title nor author of the document is known, so "
               "their prompts do not name it")
    without = sum(not question.gold for question in benchmark.questions)
    if without and "gold" in conditions:
        yield f"gold: {without} of {asked} questions have no gold, so they are asked with no documents"
    # A question whose gold is dropped can only be refused well; without an offered refusal it has no right reply.
    rules = sorted({cell.rules for cell in cells if cell.change.drop_gold and not may_refuse(cell.rules)})
    if rules and "choice" not in benchmark.scheme.groups:
        yield (f"drop_gold: the prompts of the rules {' and '.join(rules)} offer no refusal, so what is asked without "
               "its gold has no score; use rules: grounded")
    yield from _too_long(settings, cells, resources)


def _too_long(settings: RunSettings, cells: Sequence[Cell], resources: Resources) -> Iterator[str]:
    """How many questions cannot fit a model's context, for every model and way of placing chunks."""
    sizes: dict[str, int] = {}
    told: set[tuple[str | None, ...]] = set()
    reply = settings.limits.max_tokens
    for cell in cells:
        context = resources.clients[cell.model].context
        key = (cell.model, cell.condition, cell.finder, cell.format, cell.perturbation)
        if context is None or cell.searched or key in told:
            continue
        told.add(key)
        shown = [resources.placed_if_known(cell, question) for question in resources.benchmark.questions]
        over = [size for chunks in shown if (size := _least(chunks, context, reply, sizes)) is not None]
        if over:
            what = cell.condition if cell.perturbation is None else f"{cell.condition} with {cell.perturbation}"
            room = f"less {reply} for the reply" if context.whole_reply else "with the reply"
            yield (f"{what}: {len(over)} of {len(shown)} questions cannot fit the context of {cell.model}, "
                   f"{context.tokens} tokens {room}: the documents of the largest have at least {max(over)}. Each will "
                   "be too_long, and nothing is cut; conditions: retrieved shows only what is found")


def _least(chunks: Sequence[Chunk], context: Context, reply: int, sizes: dict[str, int]) -> int | None:
    """The least size of chunks that cannot fit; None where they may. A chunk of many questions is measured once."""
    if context.holds(sum(len(chunk.content) + 1 for chunk in chunks), reply):
        return None
    for chunk in chunks:
        if chunk.id not in sizes:
            sizes[chunk.id] = min_tokens(chunk.content)
    size = sum(sizes[chunk.id] for chunk in chunks)
    return size if size > context.room(reply) else None
