"""Let a model grade retrieved passages that have no human judgement. Its grades do not affect a record's metrics."""
from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from ragbed.agents.relevance_judge import RelevanceJudge
from ragbed.documents.errors import CallError
from ragbed.experiments.metrics.metric import judgement_names
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.retrieval.rerankers.reranker import JudgeReranker

HELPS = 2  # lowest grade of a passage that answers the question at least in part


class Grader(JudgeReranker):
    """Settings of the model that grades retrieved passages.

    Attributes:
        depth: how many of a question's top passages are graded.
    """

    depth: int = Field(default=10, ge=1)


async def add_grades(result: Result, question: Question, judge: RelevanceJudge, texts: Mapping[int, str],
                      depth: int) -> Result:
    """Return the result with grades for its unjudged passages. If a call fails, no grades are added, and the note
    `not_graded` gives the reason.

    Args:
        texts: text of each passage by its number.
    """
    ranked = [one for one in result.in_view if not one.repeats][:depth]
    names = judgement_names(ranked, question)
    asked = {one.number: (question.in_context, texts[one.number]) for one in ranked
             if question.gold and not one.holds and names[one.number] not in question.irrelevant}
    try:
        grades = await judge.grades(list(dict.fromkeys(asked.values())))
    except CallError as error:
        return result.model_copy(update={"notes": (*result.notes, f"not_graded:{error.kind}")})
    return result.model_copy(update={"evidence": tuple(
        one.model_copy(update={"grade": grades[asked[one.number]]}) if one.number in asked else one
        for one in result.evidence)})
