"""Notes: sentences that help a reader to interpret a run's figures."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ragbed.agents.settings import DEFAULT_MODEL
from ragbed.experiments.cells import Cell
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.formatting import format_price
from ragbed.experiments.metrics import cut_of, may_refuse
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result, Support, Verdict
from ragbed.experiments.settings.retrievers import Finder, kinds_in
from ragbed.retrieval.retrievers import RetrieverSettings
from ragbed.strategies.types import Rules, Usage


def note_shallow_retrievers(asked: Mapping[str, int], columns: Sequence[str]) -> list[str]:
    """Note columns whose cutoff exceeds the `k` of a retriever. `asked` maps retrievers to their `k`."""
    deepest = max((cut_of(name) or 0 for column in columns for name in column.split(" / ")), default=0)
    short = [(name, k) for name, k in asked.items() if k < deepest]
    return [f"{name} finds {k} chunks per question, so its figures beyond {k} are those at {k}; set k to at least "
            f"{deepest}." for name, k in short]


def note_unranked(questions: Iterable[Question]) -> list[str]:
    """Note questions without gold, which ranking metrics leave out although trec_eval counts them."""
    every = list(questions)
    without = sum(not one.gold for one in every)
    return [f"{without} of {len(every)} queries have no relevant document and are left out of ranking metrics such as "
            "nDCG; trec_eval counts the judged ones as 0."] if without else []


def note_ranked_chunks(results: Mapping[str, Sequence[Result]], names: Mapping[str, str]) -> list[str]:
    """Note that searches return chunks, but metrics rank documents. `names` labels the cells."""
    found = []
    for cell, own in results.items():
        if any(passage.repeats for result in own for passage in result.in_view):
            counts = [sum(not passage.repeats for passage in result.in_view) for result in own]
            found.append(f"{names[cell]} {median(counts):g}")
    return [f"Chunks are searched but documents are ranked, so a search finds fewer documents the smaller its chunks "
            f"are: in the median {'; '.join(found)}. Deep cutoffs favour large chunks."
            ] if found else []


_FEW = 10  # questions per half
LEXICAL = ("The lexical judge graded. It compares words, numbers and dates and misses paraphrases, so its figures are "
           "not comparable with published ones.")

_FEWER = "{} of {} questions have fewer negatives than asked for, at least {}"
_SHORT = {"negatives": _FEWER, "pool": _FEWER,
          "gold_at": "in {} of {} questions the position is beyond the end, so the gold comes last, at position {} or "
                    "later"}


def note_models(models: Sequence[str], known: Mapping[str, str] | None = None) -> list[str]:
    """Note models whose replies are recorded, and models with the weights of the small default model. `known` has the
    identities that a run recorded; they are needed if the weights are not on this machine."""
    from ragbed.agents.models import resolve_model
    from ragbed.agents.recorded import RECORDED, load_recording

    default = resolve_model(DEFAULT_MODEL, calls=False).identity
    recorded = [f"The replies of {model} are recorded: {', '.join(load_recording(model).made_with.values())}. Index, "
                "searches, scores and report were computed here." for model in models if model.startswith(RECORDED)]
    small = [f"{model} has 135 million parameters. Its answers are good only for checking the setup, not for comparing "
             "strategies." for model in models
             if default == resolve_model(model, calls=False, known=(known or {}).get(model)).identity]
    return recorded + small


def note_judge(judge: str | None, used: Usage) -> list[str]:
    """Note how answers were graded, and how much a judge model used. The cells' figures exclude that usage."""
    if judge == "lexical":
        return [LEXICAL]
    if not used.calls:
        return []
    return [f"The judge {judge} made {used.calls:,} calls with {used.prompt_tokens + used.completion_tokens:,} tokens "
            f"for {format_price(used.price)}. The cells' calls, tokens and prices do not include them."]


def note_support(check: str | None, supports: Iterable[Support | None]) -> list[str]:
    """Note how sentences and nuggets were checked, and how many labels could not be parsed."""
    labels = [label for one in supports if one is not None for label in one.labels]
    unread = sum(label.level is None for label in labels)
    return [] if check is None else [f"{check} checked sentences and nuggets: {len(labels):,} labels, of which "
                                     f"{unread:,} could not be parsed and count as 0."]


def note_gold_filled(filled: str, results: Iterable[Result]) -> list[str]:
    """Note that sub-questions contained gold answers."""
    if filled != "gold" or not any(sub.trace for result in results for sub in result.subs):
        return []
    return ["Sub-questions contained the gold answers to earlier ones, so their figures and those of the chain are not "
            "comparable with runs in which the model continues from its own answers."]


def note_unjudged(verdicts: Iterable[Verdict | None]) -> list[str]:
    """Note how many answers are unjudged and why, since readers may take them for failures of strategies."""
    said = describe_unjudged(verdicts)
    return [f"{said}. They count as 0 in the judge's metrics; as published, some means leave them out."] if said else []


def describe_unjudged(verdicts: Iterable[Verdict | None]) -> str:
    """Return how many judged answers have no readable verdict and why, or an empty string."""
    asked = [verdict for verdict in verdicts if verdict is not None]
    reasons = Counter(verdict.note or "no reason given" for verdict in asked if verdict.unjudged)
    why = ", ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
    return f"{reasons.total()} of {len(asked)} answers are unjudged: {why}" if reasons else ""


def note_rules(rules: Iterable[Rules]) -> list[str]:
    """For cells with unanswerable questions, note rules under which refusals are not scored."""
    without = [name for name in dict.fromkeys(rules) if not may_refuse(name)]
    return [f"Prompts with the rules {' and '.join(without)} do not offer a refusal, so unanswerable questions are not "
            "scored, and the unified score is the mean over the answerable ones."
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
    own = " It also answers, and may understand its own paraphrases best." if paraphraser in answering else ""
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
    return [f"In {late} of {len(questions)} questions a clue comes where the novel reveals the answer, or later: "
            "neither gold nor full shows it."] if late else []


def note_undroppable(perturbations: Iterable[str], questions: Collection[Question]) -> list[str]:
    """Note questions whose gold cannot be dropped."""
    without = sum(not question.gold for question in questions)
    if not without or not any(Perturbation.parse(name).drop_gold for name in perturbations):
        return []
    return [f"drop_gold: {without} of {len(questions)} questions do not name their gold chunks, so nothing is dropped "
            "and their answerability does not change."]


def note_missing_negatives(perturbed: Iterable[tuple[str | None, Result]]) -> list[str]:
    """Note questions whose perturbation could not be fully applied: too few negatives, or the gold at an earlier
    position.
    """
    asked: dict[str, set[str]] = {}
    had: dict[tuple[str, str], dict[str, int]] = {}
    for name, result in perturbed:
        asked.setdefault(str(name), set()).add(result.question)
        for kind, _, least in (note.partition(":") for note in result.notes):
            if kind in _SHORT:
                found, number = had.setdefault((str(name), kind), {}), int(least.split()[0])
                found[result.question] = min(number, found.get(result.question, number))
    return [f"{name}: {_SHORT[kind].format(len(found), len(asked[name]), min(found.values()))}."
            for (name, kind), found in had.items()]


ON_MINERS = "Some negatives were mined by a retriever that searches among them"


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
    return [f"{ON_MINERS}, whole or in part: {said}. They are that retriever's "
            "own nearest misses, so the ranking of retrievers depends on the miners. For a fair ranking, mine at "
            "random, with a miner that is not part of any compared retriever, or with all of them."]


def _parts_of_miner(name: str) -> frozenset[str]:
    """Return the parts of the retriever that a miner is named after, or just its name."""
    try:
        return kinds_in(TypeAdapter(RetrieverSettings).validate_python(name))
    except ValidationError:
        return frozenset({name})
