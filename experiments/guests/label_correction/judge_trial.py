"""Grade answers whose grades are known, count the judge's errors by kind, and correct a run's scores for them."""
from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.formatting import format_percent
from ragbed.experiments.guests.label_correction.made_answers import MadeAnswer, make_answers
from ragbed.experiments.guests.rescoring.rejudge import JudgedAnswer
from ragbed.experiments.judges import GradingInput
from ragbed.experiments.metrics import Estimate, Interval, estimate, estimate_clustered_share
from ragbed.experiments.metrics.intervals import Z, clip_interval, effective_questions
from ragbed.experiments.question import Rubric
from ragbed.experiments.record import Verdict
from ragbed.experiments.runs.finished import Finished

_RIGHT_POINTS = 8  # answers with more points count as right, as in `graded_em`
_LEAST_YOUDEN = 0.1  # below this, the judge is hardly better than chance, and scores are not corrected
_MOST_UNJUDGED = 0.1  # largest share of made answers without a grade
_TOTALS = {False: "all wrong answers", True: "all right answers"}
_GATE = re.compile(r"\s*(?P<rate>false_accepts|false_rejects)(?:\.(?P<kind>(?!low\b|high\b)[a-z_]+))?"
                   r"(?:\.(?P<bound>low|high))?\s*(?P<sign>[<>])\s*(?P<number>[01](?:\.\d{1,9})?)\s*", re.ASCII)


def make_trial_answers(run: Finished, rubric: Rubric, most: int) -> dict[JudgedAnswer, tuple[MadeAnswer, GradingInput]]:
    """Make answers to at most `most` of the run's answerable questions, drawn by hash. The keys are the kind of answer
    and the question's id."""
    due = sorted((one for one in run.questions.values()
                  if one.answerable and not one.options and "".join(one.answers[:1]).strip()),
                 key=lambda one: digest("trial", one.id))[:most]
    if rubric == "steps" or not due:
        raise RunError(f"{run.path}: --trial needs answerable questions with a gold answer and without options")
    shown: dict[str, dict[str, None]] = defaultdict(dict)
    for result in run.folder.results():
        shown[result.question] |= dict.fromkeys(passage.text for passage in result.in_view)
    golds = [one.answers[0] for one in run.questions.values() if one.answers]
    text = run.folder.database.text
    return {(made.kind, one.id): (made, GradingInput(
        rubric, one.in_context, made.answers, made.text, scoring=run.scoring)) for one in due
        for made in make_answers(one, " ".join(map(text, shown[one.id])), golds)}


def is_accepted(verdict: Verdict) -> bool:
    """Return whether the judge graded an answer as right. The metrics `correct` and `graded_em` use the same rule."""
    return verdict.grade == "Correct" or (verdict.points or 0) > _RIGHT_POINTS


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """The judge's errors on made answers of one kind: wrong ones that it accepted, or right ones that it rejected."""

    kind: str
    right: bool
    rate: Estimate
    half: int  # graded as partially right
    unjudged: int
    size: float  # effective number of answers, after clustering by question

    @classmethod
    def of(cls, kind: str, right: bool, graded: Sequence[tuple[str, Verdict]]) -> ErrorRate:
        """Count the errors. `graded` has the question and the verdict of each made answer."""
        import numpy as np

        judged = [(question, is_accepted(one) != right) for question, one in graded if not one.unjudged]
        asked, errors = Counter(question for question, _ in judged), Counter(one for one, wrong in judged if wrong)
        size = effective_questions(*(np.array([by[one] for one in asked], dtype=np.float64) for by in (errors, asked))
                                   ) if judged else 0.0
        half = sum(one.grade == "Partially Correct" or one.points in range(1, _RIGHT_POINTS + 1) for _, one in graded)
        rate = estimate_clustered_share([wrong for _, wrong in judged], [one for one, _ in judged]) if judged else \
            Estimate(mean=None, low=None, high=None, n=0)
        if judged and (lost := len(graded) - len(judged)):
            rate["bounds"] = [(errors.total() + most) / len(graded) for most in (0, lost)]
        return cls(kind, right, rate, half, len(graded) - len(judged), size)

    @property
    def title(self) -> str:
        """Return the name in tables, such as `wrong: near number`."""
        return self.kind if self.kind in _TOTALS.values() else f"{'right' if self.right else 'wrong'}: {self.kind}"


def count_errors(graded: Iterable[tuple[MadeAnswer, str, Verdict]]) -> list[ErrorRate]:
    """Return the error rates of all kinds, wrong answers first, each half followed by its total."""
    by_kind: dict[tuple[bool, str], list[tuple[str, Verdict]]] = defaultdict(list)
    for made, question, verdict in graded:
        by_kind[made.right, made.kind].append((question, verdict))
        by_kind[made.right, _TOTALS[made.right]].append((question, verdict))
    return [ErrorRate.of(kind, right, own) for (right, kind), own in sorted(
        by_kind.items(), key=lambda one: (one[0][0], one[0][1] in _TOTALS.values(), one[0][1]))]


def find_total(rates: Iterable[ErrorRate], right: bool) -> ErrorRate:
    return next(one for one in rates if one.kind == _TOTALS[right])


def correct_share(share: float, n: float, wrong: ErrorRate, right: ErrorRate) -> tuple[float, Interval] | None:
    """Correct a share of accepted answers for the judge's errors (Rogan and Gladen, American Journal of Epidemiology
    107, 1978). The 95 % interval, by Lang and Reiczigel (Preventive Veterinary Medicine 113, 2014), includes the
    uncertainty of both error rates. Return None if the judge is hardly better than chance, if it left too many answers
    ungraded, or if the interval is outside 0 to 1, so that the error rates cannot apply to these answers.
    """
    if any(not one.size or one.unjudged > _MOST_UNJUDGED * (one.unjudged + one.rate["n"]) for one in (wrong, right)):
        return None
    accepts, rejects = wrong.rate["mean"] or 0.0, right.rate["mean"] or 0.0
    youden = 1 - accepts - rejects
    if youden < _LEAST_YOUDEN:
        return None
    sizes = n + Z**2, right.size + 2, wrong.size + 2
    seen, found, kept = ((share * n + Z**2 / 2) / sizes[0], ((1 - rejects) * right.size + 1) / sizes[1],
                         ((1 - accepts) * wrong.size + 1) / sizes[2])
    middle = (seen + kept - 1) / (found + kept - 1)
    spread = [value * (1 - value) / size for value, size in zip((seen, found, kept), sizes, strict=True)]
    shift = 2 * Z**2 * (middle * spread[1] - (1 - middle) * spread[2])
    half = Z * math.sqrt(spread[0] + middle**2 * spread[1] + (1 - middle) ** 2 * spread[2]) / (found + kept - 1)
    low, high = middle + shift - half, middle + shift + half
    corrected = min(max((share - accepts) / youden, 0.0), 1.0)
    return (corrected, clip_interval((0.0, 1.0), Interval(low, high))) if low < 1 and high > 0 else None


def trial_view(judge: str, rates: Sequence[ErrorRate]) -> View:
    """Return a view of the error rates."""
    return View("trial", f"Trial of the judge {judge}", (
        "made answers", "n", "unjudged", "partial", "error rate"), tuple((
            one.title, one.rate["n"], one.unjudged, one.half, {**one.rate}) for one in rates), notes=(
        "An error is a wrong answer that the judge accepts as right, or a right answer that it does not accept.",))


def corrected_view(run: Finished, recorded: Mapping[JudgedAnswer, Verdict], rates: Sequence[ErrorRate]) -> View:
    """Return a view of each cell's share of right answers among the graded ones, before and after correction for the
    errors in the trial."""
    rows, totals = list[tuple[Value, ...]](), (find_total(rates, False), find_total(rates, True))
    for cell in run.cells:
        own = [(question, one) for (at, question), one in recorded.items() if at == cell.id and not one.unjudged]
        seen = ErrorRate.of("", False, [(run.grouped.of[question], one) for question, one in own])
        made = own and correct_share(seen.rate["mean"] or 0.0, seen.size, *totals)
        rows.append((run.labels[cell.id], len(own), {**seen.rate},
                     {**estimate(*made, len(own))} if made else None))
    return View("trial:corrected", "Share of right answers among those that the judge graded", (
        "cell", "n", f"judge {run.judge}", "corrected"), tuple(rows), notes=(
        "`corrected` removes the error rates of all made answers (Rogan and Gladen, 1978). It assumes that the judge "
        "errs as often on the run's answers. `-`: the judge is hardly better than chance, left over 10 % of the made "
        "answers ungraded, or cannot err as often. `--labels` makes no such assumption.",))


@dataclass(frozen=True, slots=True)
class TrialGate:
    """A condition on an error rate, such as `false_accepts.high > 0.2` or `false_accepts.near_number > 0.1`."""

    text: str
    right: bool
    kind: str
    bound: str
    above: bool
    limit: float

    @classmethod
    def parse(cls, text: str) -> TrialGate:
        """Parse a condition. Raises SettingsError if it is malformed."""
        found = _GATE.fullmatch(text)
        if found is None:
            raise SettingsError(f"--fail-if {text!r}: expected a condition on the trial such as 'false_accepts > 0.1', "
                                "'false_rejects.high > 0.2' or 'false_accepts.near_number > 0.1'")
        right = found["rate"] == "false_rejects"
        kind = found["kind"].replace("_", " ") if found["kind"] else _TOTALS[right]
        return cls(text.strip(), right, kind, found["bound"] or "mean", found["sign"] == ">", float(found["number"]))

    def holds(self, rates: Iterable[ErrorRate]) -> bool:
        """Return whether the condition holds. Unjudged answers count as errors. Raises RunError if the trial made no
        answer of that kind, or the judge graded none."""
        one = next((one for one in rates if (one.right, one.kind) == (self.right, self.kind)), None)
        if one is None or one.rate["mean"] is None:
            raise RunError(f"--fail-if {self.text!r} cannot be checked: the judge graded no made answer of this kind")
        mean = one.rate["mean"]
        value = (one.rate[self.bound] or 0.0) + one.rate.get("bounds", [mean, mean])[self.above] - mean  # type: ignore[literal-required]
        return bool(value > self.limit if self.above else value < self.limit)


def describe(judge: str, rates: Sequence[ErrorRate]) -> str:
    """Return a sentence on the result, for the run's summary."""
    def share(one: ErrorRate) -> str:
        low, high = one.rate["low"] or 0.0, one.rate["high"] or 0.0
        return f"{format_percent(one.rate['mean'] or 0.0)} [{format_percent(low)}, {format_percent(high)}]"

    wrong, right = find_total(rates, False), find_total(rates, True)
    lost = wrong.unjudged + right.unjudged
    n = wrong.rate["n"] + right.rate["n"]
    if not wrong.rate["n"] or not right.rate["n"]:
        return f"The judge {judge} graded {n} of {n + lost} answers in its trial, too few for error rates."
    return (f"In its trial, the judge {judge} accepted {share(wrong)} of {wrong.rate['n']} wrong and rejected "
            f"{share(right)} of {right.rate['n']} right answers" + (f"; {lost} are unjudged" if lost else "") + ".")
