"""What a user should know before a run makes its first call."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agents.settings import Context, least_tokens
from experiments.metrics import may_refuse
from experiments.running.gold import missing_documents

if TYPE_CHECKING:
    from documents.types import Chunk
    from experiments.cells import Cell
    from experiments.question import Benchmark
    from experiments.running.plan import Plan
    from experiments.running.resources import Resources
    from experiments.settings import RunSettings


def preflight(plan: Plan, resources: Resources) -> Iterator[str]:
    """Notes, one line each, on what looks like a mistake and on what cannot be answered."""
    benchmark, cells, settings = plan.benchmark, plan.cells, plan.settings
    if benchmark.scheme.right is None and not settings.only_searches and "steps" not in benchmark.scheme.groups:
        yield (f"{benchmark.name} is scored by what is found alone; the model is asked all the same, and what it "
               "answers has no score; reasoning: search_only asks none")
    yield from _missing_gold(benchmark, resources)
    if any(cell.condition == "closed-book" for cell in cells):
        yield from _nameless(benchmark)
    if any(cell.condition == "gold" for cell in cells):
        yield from _without_gold(benchmark)
    yield from _unscored(cells, benchmark)
    yield from _too_long(settings, cells, resources)


def _without_gold(benchmark: Benchmark) -> Iterator[str]:
    """Without gold there is none to show, and a strategy that knows of none is no worse for it."""
    without = sum(not question.gold for question in benchmark.questions)
    if without:
        yield (f"gold: {without} of {len(benchmark.questions)} questions have no gold, so they are asked "
               "with no documents")


def _unscored(cells: Sequence[Cell], benchmark: Benchmark) -> Iterator[str]:
    """A question whose gold is dropped can only be refused well; without an offered refusal it has no right reply."""
    rules = sorted({cell.rules for cell in cells if cell.change.drop_gold and not may_refuse(cell.rules)})
    if rules and "choice" not in benchmark.scheme.groups:
        yield (f"drop_gold: the prompts of the rules {' and '.join(rules)} offer no refusal, so what is asked without "
               "its gold has no score; use rules: grounded")


def _missing_gold(benchmark: Benchmark, resources: Resources) -> Iterator[str]:
    """A gold document that is nowhere can never be found, and every figure would say so of the strategies."""
    known = resources.indexed_documents()
    gold = [item for one in benchmark.questions if one.answerable for item in resources.indexed_gold(one)]
    missing = missing_documents(gold, known) if known else ()
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        yield (f"gold documents that are not among the documents asked over, so never found: "
               f"{', '.join(missing[:5])}{more}; are they mistyped?")


def _nameless(benchmark: Benchmark) -> Iterator[str]:
    """A closed book that is not named cannot be remembered."""
    nameless = sum(bool(question.whole) and not question.about for question in benchmark.questions)
    if nameless:
        yield (f"closed-book: of {nameless} of {len(benchmark.questions)} questions neither title nor author of the "
               "document is known, so their prompts do not name it")


def _too_long(settings: RunSettings, cells: Sequence[Cell], resources: Resources) -> Iterator[str]:
    """How many questions cannot fit a model's context, for every model and way of placing chunks."""
    sizes: dict[str, int] = {}
    told: set[tuple[str | None, ...]] = set()
    for cell in cells:
        context = resources.clients[cell.model].context
        key = (cell.model, cell.condition, cell.finder, cell.format, cell.perturbation)
        if context is None or cell.searched or key in told:
            continue
        told.add(key)
        shown = (resources.placed_if_known(cell, question) for question in resources.benchmark.questions)
        least = [_least(chunks, context, settings.limits.max_tokens, sizes) for chunks in shown]
        over = [size for size in least if size is not None]
        if over:
            yield _cannot_fit(cell, context, settings.limits.max_tokens, over, len(least))


def _least(chunks: Sequence[Chunk], context: Context, reply: int, sizes: dict[str, int]) -> int | None:
    """The least size of chunks that cannot fit; None where they may. A chunk of many questions is measured once."""
    if context.holds(sum(len(chunk.content) + 1 for chunk in chunks), reply):
        return None
    for chunk in chunks:
        if chunk.id not in sizes:
            sizes[chunk.id] = least_tokens(chunk.content)
    size = sum(sizes[chunk.id] for chunk in chunks)
    return size if size > context.room(reply) else None


def _cannot_fit(cell: Cell, context: Context, reply: int, over: Sequence[int], asked: int) -> str:
    what = cell.condition if cell.perturbation is None else f"{cell.condition} with {cell.perturbation}"
    room = f"less {reply} for the reply" if context.whole_reply else "with the reply"
    return (f"{what}: {len(over)} of {asked} questions cannot fit the context of {cell.model}, {context.tokens} tokens "
            f"{room}: the documents of the largest have at least {max(over)}. Each will be too_long, and nothing is "
            "cut; conditions: retrieved shows only what is found")
