"""What a judge will be asked."""
from __future__ import annotations

from experiments.judges import Graded, Judge
from experiments.planning.playing import Use
from experiments.planning.standin import prompt_tokens, reply_to
from experiments.question import Question
from experiments.scheme import Rubric
from experiments.settings import RunSettings
from strategies.types import Failure, Generate, Message, Reply

_REPLY = Generate((Message("user", ("",)),), "answer")


def judged(settings: RunSettings, rubric: Rubric | None, question: Question, answerable: bool) -> Use:
    """The most that the judge uses of one question: the reply is as long as it may be, and the judge's cannot be read.

    Args:
        answerable: under the cell's condition.
    """
    due = question.steps if rubric == "steps" else answerable and question.answers
    if rubric is None or not due:
        return Use()
    said = reply_to(_REPLY, question.text, "long", settings.limits.max_tokens).text
    graded = Graded(rubric, question.text, question.answers, said, said, tuple(step.text for step in question.steps),
                    settings.scoring, reasoned=True)
    return _asked(settings.judge, graded)


def _asked(judge: Judge, graded: Graded) -> Use:
    judging, use = judge.judge(graded), Use()
    sent: Reply | Failure | None = None
    while True:
        try:
            call = next(judging) if sent is None else judging.send(sent)
        except StopIteration:
            return use
        limit = call.max_tokens or 0
        use += Use(1, prompt_tokens(call), limit)
        sent = Reply("What of it?")
