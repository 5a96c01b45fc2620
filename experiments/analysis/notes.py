"""What a reader of a run's figures and rankings has to know, in sentences."""
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
    """Return that a column looks deeper than a retriever was `asked` to search: how many chunks, by its name."""
    deepest = max((cut_of(name) or 0 for column in columns for name in column.split(" / ")), default=0)
    short = [(name, k) for name, k in asked.items() if k < deepest]
    return [f"{name} finds {k} for a question, so its figures for more than {k} are those for {k}; set k to {deepest} "
            "or more." for name, k in short]


def note_unranked(questions: Iterable[Question]) -> list[str]:
    """Return that questions which have no gold are in no figure of a ranking, though trec_eval counts them."""
    every = list(questions)
    without = sum(not one.gold for one in every)
    return [f"{without} of {len(every)} queries have no relevant document, and are in no figure of a ranking, such as "
            "nDCG; trec_eval counts those of them that were judged as 0."] if without else []


def note_ranked_chunks(results: Mapping[str, Sequence[Result]], names: Mapping[str, str]) -> list[str]:
    """Return that chunks of documents were found where documents are ranked: the deeper cuts are then of fewer
    documents. Results are by cell, and `names` says what each is called."""
    found = []
    for cell, own in results.items():
        if any(passage.repeats for result in own for passage in result.in_view):
            counts = [sum(not passage.repeats for passage in result.in_view) for result in own]
            found.append(f"{names[cell]} {median(counts):g}")
    return [f"Chunks are searched and documents ranked, so that a search finds fewer documents than chunks, and the "
            f"fewer the smaller they are cut: in the median {'; '.join(found)}. Deeper cuts favour large chunks."
            ] if found else []


_FEW = 10  # questions of a half
LEXICAL = ("The lexical judge graded: it compares words, numbers and dates and sees no paraphrase. Its figures "
           "do not compare with published ones.")

_FEWER = "for {} of {} questions fewer negatives could be had, down to {}"
_SHORT = {"negatives": _FEWER, "pool": _FEWER,
          "gold_at": "for {} of {} questions the position is beyond the end, so the gold stands last, down to {}"}


def note_models(models: Sequence[str], known: Mapping[str, str] | None = None) -> list[str]:
    """Return a line for each model whose replies are recorded, and for each whose weights are those of the small
    default model, whatever name it has here; identities that a run recorded are `known` by name, for weights that are
    not on this machine."""
    from ragbed.agents.models import resolve_model
    from ragbed.agents.recorded import RECORDED, load_recording

    default = resolve_model(DEFAULT_MODEL, calls=False).identity
    recorded = [f"The replies of {model} are recorded: {', '.join(load_recording(model).made_with.values())}. Index, "
                "searches, scores and report were made here." for model in models if model.startswith(RECORDED)]
    small = [f"{model} answered: a model of 135 million parameters. Its answers show that the machine works, not how "
             "good a strategy is." for model in models
             if default == resolve_model(model, calls=False, known=(known or {}).get(model)).identity]
    return recorded + small


def note_judge(judge: str | None, used: Usage) -> list[str]:
    """Return what stands behind the grades, if any, and what a judge model used, which the cells' figures leave out."""
    if judge == "lexical":
        return [LEXICAL]
    if not used.calls:
        return []
    return [f"The judge {judge} made {used.calls:,} calls with {used.prompt_tokens + used.completion_tokens:,} tokens "
            f"for {format_price(used.price)}; they are not among the calls, tokens and price of the cells."]


def note_support(check: str | None, supports: Iterable[Support | None]) -> list[str]:
    """Return what stands behind the figures of sentences and nuggets, and how much of it could not be read."""
    labels = [label for one in supports if one is not None for label in one.labels]
    unread = sum(label.level is None for label in labels)
    return [] if check is None else [f"Sentences and nuggets were checked by {check}: {len(labels):,} labels, of which "
                                     f"{unread:,} could not be read and count 0."]


def note_gold_filled(filled: str, results: Iterable[Result]) -> list[str]:
    """Return that gold answers stood in the sub-questions that were asked."""
    if filled != "gold" or not any(sub.trace for result in results for sub in result.subs):
        return []
    return ["Sub-questions were asked with the gold answers to the earlier ones in them: their figures and those of "
            "the chain do not compare with runs in which a model goes on from its own answers."]


def note_unjudged(verdicts: Iterable[Verdict | None]) -> list[str]:
    """Return how many answers a judge said nothing readable of, and why: they look like failures of strategies."""
    said = describe_unjudged(verdicts)
    return [f"{said}. They count 0 in the judge's figures, whatever they say; as published, some means leave them "
            "out."] if said else []


def describe_unjudged(verdicts: Iterable[Verdict | None]) -> str:
    """Return how many of the answers that a judge was asked of are unjudged, and why; empty where none is."""
    asked = [verdict for verdict in verdicts if verdict is not None]
    reasons = Counter(verdict.note or "no reason given" for verdict in asked if verdict.unjudged)
    why = ", ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
    return f"{reasons.total()} of {len(asked)} answers are unjudged: {why}" if reasons else ""


def note_rules(rules: Iterable[Rules]) -> list[str]:
    """Return under which rules, of the cells that ask what is unanswerable, no refusal is scored."""
    without = [name for name in dict.fromkeys(rules) if not may_refuse(name)]
    return [f"Under the rules {' and '.join(without)} prompts offer no refusal: what is asked there without an answer "
            "in its documents is not scored, and the unified score is the mean over the answerable questions."
            ] if without else []


def note_variations(varied: Iterable[tuple[str | None, Result]], paraphraser: str | None,
                  answering: Collection[str]) -> list[str]:
    """Return how many questions each query variation left as they were asked, and who paraphrased; of each result
    the variation of its cell."""
    changed: dict[str, dict[str, bool]] = {}
    used = Usage()
    for name, result in varied:
        if name:
            changed.setdefault(name, {})[result.question] = bool(result.asked)
        used += result.asked_usage
    own = " It answers too, and may understand its own words best." if paraphraser in answering else ""
    return [*(f"questions: {name} leaves {list(found.values()).count(False)} of {len(found)} as they were asked."
              for name, found in changed.items() if not all(found.values())),
            *([f"{paraphraser} wrote the paraphrases, one of a question for all cells; its {used.calls:,} calls, for "
               f"{format_price(used.price)}, are in no cell's figures.{own}"] if used.calls else [])]


_NAMED = 50


def note_skipped(skipped: Sequence[str]) -> list[str]:
    """Return how many records of the benchmark's files were left out, where they stand, and why the first was."""
    lines: dict[str, list[str]] = {}
    for file, line in re.findall(r"([^/\\\n]+), (?:line|record) (\d+)[,:]", "\n".join(skipped[:_NAMED])):
        lines.setdefault(file, []).append(line)
    named = "; ".join(f"{file}, line {', '.join(numbers)}" for file, numbers in lines.items())
    more = f" and {len(skipped) - _NAMED} more" if len(skipped) > _NAMED else ""
    return [f"{len(skipped)} records do not fit and were left out (skip_bad): {named}{more}. The first: {skipped[0]}"
            ] if skipped else []


def note_small_halves(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return that a unified score among the summary's cells rests on a half of very few questions."""
    halves = [row["metrics"][name]["n"] for row in rows if row["metrics"].get("unified", {}).get("n")
              for name in ("refused_answerable", "refusal_accuracy") if name in row["metrics"]]
    least = min(filter(None, halves), default=_FEW)
    return [f"The unified score is the mean of two halves, the answerable and the unanswerable, and one has {least}: "
            f"too few to tell cells apart by it. From {_FEW} on its interval holds the truth as often as it says."
            ] if least < _FEW and len(halves) > 1 else []


def note_late_clues(questions: Collection[Question]) -> list[str]:
    """Return how many questions have a clue that no condition shows, since it stands where the answer is told."""
    late = sum("late" in question.tags.get("clues", ()) for question in questions)
    return [f"In {late} of {len(questions)} questions a clue stands at the place where the novel tells the answer, or "
            "after it: neither gold nor full shows it."] if late else []


def note_undroppable(perturbations: Iterable[str], questions: Collection[Question]) -> list[str]:
    """Return how many questions could not have their gold dropped, where a perturbation drops it."""
    without = sum(not question.gold for question in questions)
    if not without or not any(Perturbation.parse(name).drop_gold for name in perturbations):
        return []
    return [f"drop_gold: {without} of {len(questions)} questions do not say which chunks are gold: none of theirs is "
            "dropped, and they count as answerable or not as before."]


def note_missing_negatives(perturbed: Iterable[tuple[str | None, Result]]) -> list[str]:
    """Return for how many questions fewer negatives could be had, or the gold stands nearer, than a perturbation asks
    for; each result comes with that of its cell."""
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


ON_MINERS = "Negatives were mined by what searches among them"


def note_miners(finders: Mapping[str, Finder], cells: Iterable[Cell], questions: Iterable[Question]) -> list[str]:
    """Return that retrievers search among negatives which one of them, or a part of one, has mined: they are its own
    nearest misses, and no other's."""
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
            "own nearest misses, so its figures, and which retriever is better, are relative to the miners. For a "
            "ranking that is not, mine by random, by a miner that no compared retriever is made of, or by all of them "
            "together."]


def _parts_of_miner(name: str) -> frozenset[str]:
    """Return the parts of the retriever that a miner is named after, or the name alone if it is not a retriever."""
    try:
        return kinds_in(TypeAdapter(RetrieverSettings).validate_python(name))
    except ValidationError:
        return frozenset({name})
