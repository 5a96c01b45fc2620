"""The scripted reader of the benchmarks: it knows in what form every prompt asks for a reply."""
import sys
from functools import partial
from itertools import count
from pathlib import Path

from each_case import each

from ragbed.agents import Scripted
from ragbed.agents.scripted import unsatisfied_reply
from ragbed.documents import Chunk
from ragbed.strategies import ANSWERING, RETRIEVAL

sys.path.append(str(Path(__file__).parent.parent / "bench"))
import reading_server

ANSWERS = ("answer", "solve")
PROSE = ("draft", "verify")  # what iterative searches with, and what chain_of_verification asks of each check
QUESTION = "Which river flows past the Kessel mill?"


MODELS = {"brief": lambda call: "<Answer>Yes [1]</Answer>" if call.purpose == "answer" else QUESTION,
          "doubt": unsatisfied_reply, "deaf": partial(unsatisfied_reply, tools=False),
          "list": partial(unsatisfied_reply, lists=True)}


def calls_of(reasoning, retrieval, model):
    """Every call of a question whose searches each bring another document."""
    numbers = count(1)

    def find(search):
        number = str(next(numbers))
        return [Chunk(number, "", "plain", 0, 9, f"Mill {number}")]

    scripted = Scripted(MODELS[model], find)
    scripted.play(reasoning, QUESTION, retrieval)
    return scripted.calls


@each(("reasoning", "retrieval"), [
    *((name, "once") for name in ANSWERING if name != "few_shot"), *(("direct", name) for name in RETRIEVAL)])
def test_every_prompt_gets_the_form_that_it_asks_for(reasoning, retrieval):
    for call in (call for model in MODELS for call in calls_of(reasoning, retrieval, model)):
        last = call.messages[-1].content
        asks = call.purpose not in (*ANSWERS, *PROSE) and not call.tools
        assert (reading_server.form_of(last) is not None) == asks, (call.purpose, last)


def replied(prompt):
    return reading_server.reply_to([{"role": "user", "content": prompt}])


def test_a_passage_is_made_of_the_words_of_its_query():
    prompt, = {call.messages[-1].content for call in calls_of("direct", "hyde", "brief") if call.purpose != "answer"}
    assert replied(prompt) == "Which river flows past the Kessel mill is known, and so is what it is about."


def test_what_one_search_brings_is_not_enough_and_what_two_bring_is():
    prompt = next(call for call in calls_of("sufficient", "once", "doubt")).messages[-1].content
    assert replied(prompt).splitlines()[-1] == "Sufficiency: 4"
    more = "".join(f"[{number}]\nMill {number} stands.\n" for number in range(2, 7))
    assert replied(prompt.replace("</documents>", f"{more}</documents>")).splitlines()[-1] == "Sufficiency: 9"
