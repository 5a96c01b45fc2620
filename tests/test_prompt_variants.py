"""Wordings of instructions: in every prompt of the five strategies, and as a factor of a run."""
import re

import pytest
from each_case import each

from ragbed.agents import Scripted
from ragbed.strategies import CRESTS, RETRIEVAL, Task, template
from ragbed.strategies.prompting import PROMPT_VARIANTS, instruction

NAMES = ("direct", "direct_cited", "chain_of_thought", "chain_of_draft", "plan_and_solve", "least_to_most_decompose",
         "least_to_most_alone", "least_to_most_solve", "least_to_most_next", "least_to_most_final",
         "least_to_most_finish")


def worded(name, number):
    fields = dict.fromkeys(re.findall(r"\{(\w+)\}", template(name)), "What is X?")
    return instruction(Task("q", "?", RETRIEVAL["once"], prompt_variant=number), name, **fields)


@each("name", NAMES)
def test_an_instruction_has_five_wordings_with_the_same_fields_that_name_nothing_that_must_not_come(name):
    said = [worded(name, number) for number in range(1, PROMPT_VARIANTS + 1)]
    assert said[0] == template(name).replace("{sub_question}", "What is X?").replace("{question}", "What is X?")
    assert len(set(said)) == PROMPT_VARIANTS
    assert not [text for text in said[1:] if re.search(r"\b(not|no|never|without|nothing)\b|n't", text)]


@pytest.mark.parametrize("changes", [{}, {"answer_format": "json"}, {"layout": "as_published"}], ids=str)
@pytest.mark.parametrize("name", CRESTS)
def test_a_wording_changes_the_instruction_of_every_call_of_a_strategy_and_nothing_else(name, changes):
    def prompts(number):
        model = Scripted(["Who built it?\nWho paid?", "Ann.", "Bo.", "Oslo"] if name == "least_to_most" else ["Oslo"],
                         ["Oslo is in Norway."])
        model.play(name, prompt_variant=number, **changes)
        said = ["\n".join(message.content for message in call.messages) for call in model.calls]
        for one in sorted(NAMES, key=lambda one: -len(worded(one, number))):
            own = worded(one, number).replace("What is X?", "").strip()
            said = [text.replace(own, "<instruction>") for text in said]
        return said

    assert prompts(1) == prompts(2) == prompts(3) == prompts(4) == prompts(5)
    assert all("<instruction>" in text for text in prompts(5))


def test_wordings_are_a_factor_of_a_run_that_asks_the_first_as_a_run_without_them(serve, town, ragbed):
    server = serve(town.reply)
    ragbed.json("run", town.config(server.url, reasoning=["direct", "quote_first"]))
    asked = len(server.requests)
    path = town.config(server.url, reasoning=["direct", "quote_first"], prompt_variants=3)
    made = ragbed.json("run", path)
    assert len(server.requests) == asked + 12  # six questions, of the two new cells
    assert [(cell["reasoning"], cell.get("prompt_variant")) for cell in made["cells"]] == [
        ("direct", 1), ("quote_first", None), ("direct", 2), ("direct", 3)]
    assert any("6 combinations of the settings make 4 cells" in note for note in made["notes"])
    assert "prompt_variant" in {one["factor"] for one in made["effects"]["factors"]}
    assert sum(pair["factor"] == "prompt_variant" for pair in made["comparisons"]["pairs"]) == 3
    shown = ragbed("show", town.run, "#2", "--prompts", "--cell", "direct · prompt variant 2")[1]
    assert worded("direct_cited", 2)[:40] in shown
    listed = ragbed.json("run", town.config(server.url, "listed", prompt_variants=[2, 3], name="listed"))
    assert [cell["prompt_variant"] for cell in listed["cells"]] == [2, 3]
    assert listed["cells"][0]["id"] == made["cells"][2]["id"]


@pytest.mark.parametrize("said", [0, 6, [6], [1, 1], [], "two"])
def test_what_is_no_number_of_wordings_is_refused_in_a_line(serve, town, ragbed, said):
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1", prompt_variants=said), says=["prompt_variants"])
