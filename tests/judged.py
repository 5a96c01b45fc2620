"""What the tests of the judges have in common: answers to judge, and a judge at play."""
from ragbed.experiments.judges import GradingInput


def graded(question, answers, predicted):
    return GradingInput("grades", question, answers, predicted)


STORY = GradingInput("steps", "Who did it?", ("B",), "B", "The gardener limps. So did the thief.",
               ("The thief limped [1].", "The\ngardener limps.", "So the gardener is the thief."))
SUM = GradingInput("points", "How many?", ("7 wins",), "First 3, ANSWER: 7 wins [1]. ANSWER: 8")


def play(judging, *replies):
    """Sends the replies in turn; returns what was asked, and the verdict."""
    asked, sent = [], iter((None, *replies))
    try:
        while True:
            asked.append(judging.send(next(sent)))
    except StopIteration as end:
        return asked, end.value
