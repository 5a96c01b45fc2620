"""Notes: sentences that help a reader to interpret a run's figures, such as which settings made no difference."""
from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ragbed.agents.model_settings import PROMPT_CUT
from ragbed.experiments.cells import FACTORS, Cell
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.formatting import format_price, join_names
from ragbed.experiments.metrics import cut_of, may_refuse
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result, Verdict
from ragbed.experiments.settings.retrievers import Finder, kinds_in
from ragbed.retrieval.retrievers import RetrieverSettings
from ragbed.strategies.types import Rules, Usage


def note_shallow_retrievers(asked: Mapping[str, int], columns: Sequence[str]) -> list[str]:
    """Note the columns whose cutoff exceeds the `k` of a retriever. `asked` maps retrievers to their `k`."""
    deepest = max((cut_of(name) or 0 for column in columns for name in column.split(" / ")), default=0)
    short = [(name, k) for name, k in asked.items() if k < deepest]
    return [f"{name} finds {k} chunks per question, so metrics with a larger cutoff equal those at {k}; set k to at "
            f"least {deepest}." for name, k in short]


def note_unranked(questions: Iterable[Question]) -> list[str]:
    """Note questions without gold, which ranking metrics leave out although trec_eval counts them."""
    every = list(questions)
    without = sum(not one.gold for one in every)
    return [f"{without} of {len(every)} queries have no relevant document and are left out of ranking metrics such as "
            "nDCG; trec_eval counts the judged ones as 0."] if without else []


def note_ranked_chunks(shown: Iterable[tuple[str, ShownPassages]]) -> list[str]:
    """Note that searches return chunks, but metrics rank documents. Each cell has a label."""
    found = [f"{label} {median(one.documents):g}" for label, one in shown if one.total > sum(one.documents)]
    return [f"Documents are ranked by their best chunk, so the same number of hits covers fewer documents if chunks "
            f"are small: in the median {'; '.join(found)}. Deep cutoffs favour large chunks."
            ] if found else []


class ShownPassages:
    """What the answers of a cell show, without keeping it: add them in the order of the questions.

    Attributes:
        total: the number of passages in view.
        documents: for each answer, how many of them do not repeat a document.
        any: whether an answer has a passage or a text.
    """

    def __init__(self) -> None:
        self.total, self.documents, self.any = 0, array("i"), False
        self._hash = hashlib.sha256()

    def add(self, result: Result) -> None:
        """Count an answer."""
        view = result.in_view
        self.total += len(view)
        self.documents.append(sum(not passage.repeats for passage in view))
        self.any = self.any or bool(view or result.text)
        self._hash.update(repr((result.question, result.outcome, result.text, [one.chunk for one in view])).encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShownPassages) and self._hash.digest() == other._hash.digest()


_FEW = 10  # intervals need this many questions per half
LEXICAL = ("The lexical judge graded the answers. It compares words, numbers and dates and misses paraphrases, so its "
           "scores are not comparable with published ones.")

_FEWER = "{} of {} questions have fewer negatives than requested; the smallest number is {}"
_SHORT = {"negatives": _FEWER, "pool": _FEWER,
          "gold_at": "{} of {} questions have too few chunks for this position, so their gold comes last, at position "
          "{} or "
                    "later"}


def note_refused(unsent: Iterable[Sequence[str]]) -> list[str]:
    """Note which parameters the server of each model refused. Each entry has the model, then the parameters."""
    refused: dict[str, dict[str, None]] = {}
    for model, *names in unsent:
        refused.setdefault(model, {}).update(dict.fromkeys(names))
    return [f"The server of {model} refused {' and '.join(sorted(names))}, so ragbed left it out of the calls."
            for model, names in sorted(refused.items())]


def note_cut_prompts(results: Collection[Result]) -> list[str]:
    """Note answers to prompts that the server cut, as its token counts show."""
    cut = sum(PROMPT_CUT in result.notes for result in results)
    return [f"In {cut} of {len(results)} answers the server counted fewer prompt tokens than the prompt has, so it "
            "probably cut the prompt. `ragbed doctor MODEL` checks the model's context."] if cut else []


def note_judge(judge: str | None, used: Usage) -> list[str]:
    """Note how answers were graded, and how much a judge model used. The cells' figures exclude that usage."""
    if judge == "lexical":
        return [LEXICAL]
    if not used.calls:
        return []
    return [f"The judge {judge} made {used.calls:,} calls with {used.prompt_tokens + used.completion_tokens:,} tokens "
            f"for {format_price(used.price)}. The cells' calls, tokens and prices do not include them."]


def note_cached(results: Iterable[Result]) -> list[str]:
    """Note how many prompt tokens a server had cached."""
    used = sum((one.usage + one.sub_usage + one.asked_usage + one.probe_usage + one.judge_usage for one in results),
               Usage())
    if not used.cached_tokens:  # some servers report none
        return []
    share = used.cached_tokens / used.prompt_tokens
    return [f"Servers had {used.cached_tokens:,} of {used.prompt_tokens:,} prompt tokens cached ({share:.0%}), because "
            "prompts began alike. Judges are included."]


def note_gold_filled(filled: str, results: Iterable[Result]) -> list[str]:
    """Note that sub-questions contained gold answers."""
    if filled != "gold" or not any(sub.trace for result in results for sub in result.subs):
        return []
    return ["Sub-questions contained the gold answers to earlier ones, so their figures and those of the chain are not "
            "comparable with runs in which the model continues from its own answers."]


def note_unjudged(found: Mapping[str, Any]) -> list[str]:
    """Note what the judge's metrics cover if answers are unjudged, from the summary's key `unjudged`."""
    return [f"{one['said']}. The judge's metrics leave them out; `with unjudged` is the range of means that their "
            "grades could give. As published, the unified score counts them as 0." for one in found.values()]


def describe_unjudged(verdicts: Iterable[Verdict | None]) -> str:
    """Return how many judged answers have no readable verdict and why, or an empty string."""
    asked = [verdict for verdict in verdicts if verdict is not None]
    reasons = Counter(verdict.note or "no reason given" for verdict in asked if verdict.unjudged)
    why = ", ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
    return f"{reasons.total()} of {len(asked)} answers are unjudged: {why}" if reasons else ""


def note_own_judges(results: Iterable[Result]) -> list[str]:
    """Note the answers that judges with a column of their own did not grade, and why."""
    by_judge: dict[str, list[Verdict]] = {}
    for verdict in (one for result in results for one in result.judgements):
        by_judge.setdefault(verdict.judge, []).append(verdict)
    return [f"{name}: {said}." for name, verdicts in by_judge.items() if (said := describe_unjudged(verdicts))]


def note_rules(rules: Iterable[Rules]) -> list[str]:
    """For cells with unanswerable questions, note rules under which refusals are not scored."""
    without = [name for name in dict.fromkeys(rules) if not may_refuse(name)]
    return [f"Prompts with the rules {' and '.join(without)} do not offer a refusal, so unanswerable questions are not "
            "scored. Figures cover only the answerable ones."
            ] if without else []


def note_variations(varied: Iterable[tuple[str | None, Result]], paraphraser: str | None,
                  answering: Collection[str]) -> list[str]:
    """Note how many questions each query variation left unchanged, and which model paraphrased."""
    changed: dict[str, dict[str, bool]] = {}
    used = Usage()
    for name, result in varied:
        if name:
            changed.setdefault(name, {})[result.question] = bool(result.asked)
        used += result.asked_usage
    own = " This model also answers, and may understand its own paraphrases best." if paraphraser in answering else ""
    return [*(f"questions: {name} leaves {list(found.values()).count(False)} of {len(found)} questions unchanged."
              for name, found in changed.items() if not all(found.values())),
            *([f"{paraphraser} wrote the paraphrases, one per question for all cells. The cells' figures exclude its "
               f"{used.calls:,} calls, for {format_price(used.price)}.{own}"] if used.calls else [])]


_NAMED = 50


def note_skipped(skipped: Sequence[str]) -> list[str]:
    """Note how many records of the benchmark's files were skipped, in which files, and why the first one was."""
    lines: dict[str, list[str]] = {}
    for file, line in re.findall(r"([^/\\\n]+), (?:line|record) (\d+)[,:]", "\n".join(skipped[:_NAMED])):
        lines.setdefault(file, []).append(line)
    named = "; ".join(f"{file}, line {', '.join(numbers)}" for file, numbers in lines.items())
    more = f" and {len(skipped) - _NAMED} more" if len(skipped) > _NAMED else ""
    return [f"{len(skipped)} invalid records were left out (skip_bad): {named}{more}. The first: "
            f"{skipped[0]}"] if skipped else []


def note_small_halves(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Note a unified score with few questions in one half."""
    halves = [row["metrics"][name]["n"] for row in rows if row["metrics"].get("unified", {}).get("n")
              for name in ("refused_answerable", "refusal_accuracy") if name in row["metrics"]]
    least = min(filter(None, halves), default=_FEW)
    return [f"The unified score is the mean of two halves, answerable and unanswerable questions. One half has only "
            f"{least} questions; intervals are reliable from {_FEW} questions per half."
            ] if least < _FEW and len(halves) > 1 else []


def note_late_clues(questions: Collection[Question]) -> list[str]:
    """Note questions with a clue that no condition shows, because the text is cut before the answer is revealed."""
    late = sum("late" in question.tags.get("clues", ()) for question in questions)
    return [f"In {late} of {len(questions)} questions a clue comes at or after the paragraph that reveals the answer, "
            f"so neither gold nor full shows it."] if late else []


def note_undroppable(perturbations: Iterable[str], questions: Collection[Question]) -> list[str]:
    """Note questions whose gold cannot be dropped."""
    without = sum(not question.gold for question in questions)
    if not without or not any(Perturbation.parse(name).drop_gold for name in perturbations):
        return []
    return [f"drop_gold: {without} of {len(questions)} questions have no labelled gold chunks, so none are dropped, "
            "and the questions stay answerable."]


def note_placing(perturbed: Iterable[tuple[str | None, Result]]) -> list[str]:
    """Note questions whose evidence could not be placed as asked: whole documents as gold, too few negatives, or the
    gold at an earlier position."""
    perturbed = list(perturbed)
    asked: dict[str, set[str]] = {}
    had: dict[tuple[str, str], dict[str, int]] = {}
    for name, result in perturbed:
        asked.setdefault(str(name), set()).add(result.question)
        for kind, _, least in (note.partition(":") for note in result.notes):
            if kind in _SHORT:
                found, number = had.setdefault((str(name), kind), {}), int(least.split()[0])
                found[result.question] = min(number, found.get(result.question, number))
    return [*note_whole_gold((result.question, result.notes) for _, result in perturbed),
            *(f"{name}: {_SHORT[kind].format(len(found), len(asked[name]), min(found.values()))}."
              for (name, kind), found in had.items())]


def note_whole_gold(notes: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Note questions for which the condition `gold` shows whole documents. `notes`: questions with notes of records."""
    sizes: dict[str, int] = {}
    for question, some in notes:
        size = next((int(one.partition(":")[2]) for one in some if one.startswith("gold_whole:")), 0)
        sizes[question] = max(size, sizes.get(question, 0))
    whole = sum(map(bool, sizes.values()))
    return [f"gold: {whole} of {len(sizes)} questions show whole documents, the largest of {max(sizes.values()):,} "
            "tokens: their gold names no page, and the words of the answer were not found; state pages or quotes."
            ] if whole else []


ON_MINERS = "Some negatives were mined by a retriever that is compared here"


def note_miners(finders: Mapping[str, Finder], cells: Iterable[Cell], questions: Iterable[Question]) -> list[str]:
    """Note retrievers whose search includes negatives that they, or one of their parts, mined."""
    miners = dict.fromkeys(found.miner for question in questions for one in question.mined.values()
                           for found in one.found)
    searching = {cell.finder or "" for cell in cells if cell.searched and cell.format is None} if miners else ()
    parts = {name: kinds_in(finders[name].retriever) for name in sorted(searching)}
    shared = {miner: names for miner in miners
              if (names := [name for name, own in parts.items() if own & _parts_of_miner(miner)])}
    if not shared:
        return []
    said = "; ".join(f"{miner} by {' and '.join(names)}" for miner, names in shared.items())
    return [f"{ON_MINERS} or is part of one: {said}. They are the negatives that this retriever ranks highest, so the "
            f"ranking of retrievers depends on the miners. For a fair ranking, mine at random, with a miner that is "
            f"not part of any compared retriever, or with all of them."]


def _parts_of_miner(name: str) -> frozenset[str]:
    try:
        return kinds_in(TypeAdapter(RetrieverSettings).validate_python(name))
    except ValidationError:
        return frozenset({name})


_TESTED = tuple(name for name in FACTORS if name not in ("benchmark", "model", "repeat"))


def describe_inert(cells: Sequence[Cell], results: Mapping[str, Sequence[Result]], shown: Mapping[str, ShownPassages],
                   read_traces: Callable[[], Iterable[Result]]) -> list[str]:
    """Return a sentence for each factor of which some or all levels gave the same hits and prompts.

    Args:
        results, shown: results of each cell, and what they show.
        read_traces: reads all results with their traces; called only if outcomes do not tell the cells apart.
    """
    groups = _groups(cells)
    alike = {(one.id, other.id) for found in groups.values() for group in found for one, other in combinations(group, 2)
             if shown[one.id].any and shown[one.id] == shown[other.id]}
    asked = {id for pair in alike for id in pair if any(one.usage.calls for one in results[id])}
    if asked:
        sent = _requests(read_traces(), asked)
        alike = {(one, other) for one, other in alike if sent.get(one) == sent.get(other)}
    sentences = []
    for factor, found in groups.items():
        for levels, members in _clusters(factor, found, alike):
            count = sum(len(results[cell.id]) for cell in members)
            what = " and ".join(["searches"] * any(cell.searched for cell in members)
                                + ["prompts"] * any(cell.id in asked for cell in members))
            every = {str(getattr(cell, factor)) for group in found for cell in group}
            some = f": {join_names(levels)}" if len(levels) < len(every) else ""
            sentences.append(f"{factor}{some} made no difference: all {count:,} {what} are identical")
    return sentences


def _groups(cells: Sequence[Cell]) -> dict[str, list[list[Cell]]]:
    """Return for each factor the groups of cells that differ in it alone."""
    found: dict[str, list[list[Cell]]] = {}
    for factor in _TESTED:
        by_rest: dict[str, list[Cell]] = defaultdict(list)
        for cell in cells:
            by_rest[str({**cell.levels, factor: None})].append(cell)
        if groups := [group for group in by_rest.values() if len(group) > 1]:
            found[factor] = groups
    return found


def _requests(results: Iterable[Result], cells: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Return the hashes of the requests of each question, by cell."""
    found: dict[str, dict[str, list[str]]] = {cell: {} for cell in cells}
    for one in results:
        if one.cell in found:
            found[one.cell][one.question] = [step.key for step in one.trace if step.key is not None]
    return found


def _clusters(factor: str, groups: Sequence[Sequence[Cell]],
              alike: set[tuple[str, str]]) -> list[tuple[list[str], list[Cell]]]:
    """Return the levels of a factor that are alike wherever they meet, with the cells that meet."""
    pairs: dict[tuple[str, str], list[tuple[Cell, Cell]]] = defaultdict(list)
    for group in groups:
        for one, other in combinations(group, 2):
            pairs[str(getattr(one, factor)), str(getattr(other, factor))].append((one, other))
    same = {levels for levels, met in pairs.items() if all((one.id, other.id) in alike for one, other in met)}
    clusters: list[list[str]] = []
    for levels in pairs:
        if levels in same:
            known = next((cluster for cluster in clusters if levels[0] in cluster or levels[1] in cluster), None)
            if known is None:
                clusters.append(list(levels))
            else:
                known += [level for level in levels if level not in known]
    return [(cluster, list(dict.fromkeys(cell for levels, met in pairs.items() if levels in same
                                         and levels[0] in cluster for pair in met for cell in pair)))
            for cluster in clusters]
