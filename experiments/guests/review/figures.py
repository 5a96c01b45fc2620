"""Summarise reviews: how many items were accepted, how far reviewers agree, and the share of wrong labels."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ragbed.documents.errors import RunError
from ragbed.documents.json import loads
from ragbed.documents.types import Document
from ragbed.experiments.benchmarks.hub import CARD
from ragbed.experiments.formatting import plural, visible
from ragbed.experiments.guests.label_correction.agreement import krippendorff_alpha, measure_agreement
from ragbed.experiments.guests.rescoring.rejudge import Rater
from ragbed.experiments.guests.review.items import Item, ReviewSet, question_line
from ragbed.experiments.guests.review.reviews import Review, ReviewFile
from ragbed.experiments.metrics.intervals import TAIL, Interval
from ragbed.experiments.record import Verdict
from ragbed.experiments.runs.store import write_text

Reviews = Mapping[str, Mapping[str, Review]]  # reviews by reviewer, then by item


def compute_figures(items: Sequence[str], reviews: Reviews, stale: int = 0) -> dict[str, Any]:
    """Return the figures of the reviews, as JSON. `items` are all ids in the order shown.

    The majority of an item's reviewers accepts or rejects it; a tie is disputed. The item's label is wrong if at least
    half of them rejected it (except as not useful) or accepted it only with edits.
    """
    decided = {id: found for id in items if (found := [
        own[id] for own in reviews.values() if id in own and own[id].decision])}
    outcomes = {id: majority_outcome(found) for id, found in decided.items()}
    reasons = Counter(Counter(one.reason for one in decided[id] if one.decision == "reject").most_common(1)[0][0]
                      for id, outcome in outcomes.items() if outcome == "rejected")
    errors = sum(2 * sum(one.faulty for one in found) >= len(found) for found in decided.values())
    n, of = len(decided), len(items)
    low, high = finite_share_interval(errors, n, of)
    counts = Counter(outcomes.values())
    return {
        "items": of, "reviewed": n, "accepted": counts["accepted"],
        "edited": sum(outcome == "accepted" and any(one.edited for one in decided[id]) for id,
                      outcome in outcomes.items()),
        "rejected": counts["rejected"], "disputed": counts["disputed"], "reasons": dict(reasons.most_common()),
        "label_error": {"errors": errors, "n": n, "of": of, "share": errors / n if n else None, "low": low,
                        "high": high, "random": set(decided) == set(items[:n])},
        "reviewers": [_reviewer_figures(name, own) for name, own in reviews.items()],
        "agreement": _agreement(reviews, decided), "stale": stale}


def read_figures(reviewed: ReviewSet) -> tuple[dict[str, Any], Reviews]:
    """Read the reviews of a set, and compute its figures. Raises RunError if there are none, or they are unreadable."""
    file = ReviewFile(reviewed.file, reviewed.items, reading=True)
    with closing(file):
        reviews = {name: {id: review for id, (_, review) in own.items()} for name, own in file.latest().items()}
        return compute_figures(list(reviewed.items), reviews, file.count_stale()), reviews


def majority_outcome(reviews: Sequence[Review]) -> str:
    """Return the majority's decision on an item: `accepted`, `rejected`, or `disputed` at a tie."""
    accepts = sum(one.decision == "accept" for one in reviews)
    return "disputed" if 2 * accepts == len(reviews) else "accepted" if 2 * accepts > len(reviews) else "rejected"


def finite_share_interval(found: int, n: int, of: int) -> Interval:
    """Return the exact 95 % interval of a share in a finite population of size `of`, from a random sample of n.

    It contains the shares that a test with the hypergeometric distribution does not reject (Buonaccorsi, "A Note on
    Confidence Intervals for Proportions in Finite Populations", The American Statistician 41, 1987). In a large
    population this equals Clopper and Pearson's interval. If everything was reviewed, it is the share itself.
    """
    import numpy as np
    from scipy.stats import hypergeom

    if not n:
        return Interval(None, None)
    faulty = np.arange(found, of - n + found + 1)  # all possible numbers of wrong labels
    possible = faulty[(hypergeom.sf(found - 1, of, faulty, n) > TAIL) & (hypergeom.cdf(found, of, faulty, n) > TAIL)]
    return Interval(float(possible[0] / of), float(possible[-1] / of))


def _reviewer_figures(name: str, reviews: Mapping[str, Review]) -> dict[str, Any]:
    counts = Counter(one.decision for one in reviews.values())
    return {"name": name, "reviewed": counts["accept"] + counts["reject"], "accepted": counts["accept"],
            "edited": sum(one.edited for one in reviews.values()), "rejected": counts["reject"],
            "notes": sum(bool(one.note) for one in reviews.values())}


def _agreement(reviews: Reviews, decided: Mapping[str, Sequence[Review]]) -> dict[str, Any]:
    """Return Cohen's kappa of each pair of reviewers, and for more than two Krippendorff's alpha."""
    raters = [Rater(name, {("", id): Verdict(judge=name, grade="Correct" if one.decision == "accept" else "Wrong")
                           for id, one in own.items() if one.decision}) for name, own in reviews.items()]
    pairs = [{name: value for name, value in asdict(pair).items() if name not in ("judgements", "labels", "table")}
             for pair in measure_agreement(raters, "grades", {})]
    both = [[one.decision for one in found] for found in decided.values() if len(found) > 1]
    return {"items": len(both), "pairs": pairs, "alpha": krippendorff_alpha(both) if len(raters) > 2 else None}


def describe_figures(found: Mapping[str, Any]) -> list[str]:
    """Return the figures as sentences, which are also Markdown."""
    if not found["reviewed"]:
        return ["Nothing has been reviewed yet."]
    reasons = "; ".join(f"{reason} {count}" for reason, count in found["reasons"].items())
    edited = f" ({found['edited']} with edits)" if found["edited"] else ""
    disputed = f", {found['disputed']} disputed" if found["disputed"] else ""
    people = sum(one["reviewed"] > 0 for one in found["reviewers"])
    error = found["label_error"]
    interval = f"[{100 * error['low']:.0f}, {100 * error['high']:.0f}]"
    lines = [f"{found['reviewed']} of {plural(found['items'], 'item')} reviewed by "
             f"{plural(people, 'person', 'people')}: {found['accepted']} accepted{edited}, "
             f"{found['rejected']} rejected{f' ({reasons})' if reasons else ''}{disputed}.",
             f"Label error: {100 * error['share']:.0f} % {interval} of {error['n']} reviewed of {error['of']}."]
    if not error["random"]:
        lines.append("Items were skipped or picked, so the reviewed ones are not a random sample. The interval is "
                     "valid only if they resemble one.")
    agreement = found["agreement"]
    lines += [f"{pair['first']} and {pair['second']}: {_describe_kappa(pair)}." for pair in agreement["pairs"]
              if pair["n"]]
    if agreement["alpha"] is not None:
        lines.append(f"All reviewers: Krippendorff's alpha {agreement['alpha']:.2f} on "
                     f"{plural(agreement['items'], 'item')} with two or more reviews.")
    if found["stale"]:
        lines.append(f"Not counted: {plural(found['stale'], 'review')} of items that have changed or no longer exist.")
    return lines


def _describe_kappa(pair: Mapping[str, Any]) -> str:
    agree = f"they agree on {100 * pair['agree']:.0f} % of {pair['n']}"
    if pair["kappa"] is None:
        return f"{agree}, Cohen's kappa is undefined because both always gave the same verdict"
    interval = "" if pair["low"] is None else f" [{pair['low']:.2f}, {pair['high']:.2f}]"
    return f"{agree}, Cohen's kappa {pair['kappa']:.2f}{interval}"


def accepted_lines(items: Mapping[str, Item], reviews: Reviews, documents: Mapping[str, Document]) -> list[str]:
    """Return the accepted items, sorted by id, as lines of a questions file. Each has its latest edit, and the evidence
    chosen last."""
    lines = []
    for id in sorted(items):
        found = [own[id] for own in reviews.values() if id in own and own[id].decision]
        if found and majority_outcome(found) == "accepted":
            edit = next((one for one in reversed(found) if one.edited), Review())
            item = replace(items[id], question=edit.question or items[id].question,
                           answers=edit.answers or items[id].answers)
            line = {**question_line(item, documents), **item.made.get("line", {})}
            chosen = next((one.evidence for one in reversed(found) if one.evidence), ())
            line["gold_documents"] += [item.made["candidates"][number - 1] for number in chosen]
            lines.append(json.dumps(line, ensure_ascii=False, sort_keys=True))
    return lines


def review_section(found: Mapping[str, Any]) -> str:
    """Return the section of a set's card that shows the figures, as Markdown."""
    return "\n".join(["## Review", "", *(f"- {visible(line)}" for line in describe_figures(found))])


def write_on_card(folder: Path, found: Mapping[str, Any]) -> None:
    """Write the figures onto a constructed set's card: into card.json, and before the settings in card.md. Do nothing
    if there is no card. Raises RunError if the card is damaged."""
    path, text = folder / CARD, folder / "card.md"
    if not path.exists():
        return
    try:
        card = {**loads(path.read_bytes()), "review": found}
        before, heading, after = text.read_text(encoding="utf-8").partition("\n## Settings\n")
        if not heading:
            raise ValueError("no settings")
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"{path}: damaged; rerun the command that built the set to write it again (reviews are kept)"
                       ) from error
    kept = before.partition("\n## Review\n")[0].rstrip()
    write_text(path, json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    write_text(text, f"{kept}\n\n{review_section(found)}\n{heading}{after}")
