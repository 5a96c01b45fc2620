"""The examples of docs/own-judges.md, and of the prompts in docs/strategies.md, run as they stand there."""
import re
from pathlib import Path

import yaml

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_judges_of_the_page_grade_a_run_and_a_changed_rubric_is_asked_again(serve, town, ragbed, tmp_path,
                                                                                monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, rubric = blocks("own-judges.md", "")[0].removeprefix("# ").split("\n", 1)
    Path(name).write_text(rubric)
    name, code = blocks("own-judges.md", "python")[0].removeprefix("# ").split("\n", 1)
    Path(name).write_text(code)

    def reply(body):
        text = body["messages"][0]["content"]
        return "Grade: Fair" if "well an answer" in text else "Grade: 4" if "polite" in text else "Grade: Correct" \
            if "accepted answer" in text else town.reply(body)

    server = serve(reply)
    first, second = (yaml.safe_load(text.replace("openai:gpt-5-mini", f"{server.url}#m"))["judge"]
                     for text in blocks("own-judges.md", "yaml"))
    path = town.config(server.url, judge=[*first, second[1]])
    made = ragbed.json("run", path)
    assert made["columns"][-3:] == ["faithful", "tone", "length"]
    assert {name: made["cells"][0]["metrics"][name]["mean"] for name in made["columns"][-3:]} == {
        "faithful": 0.4, "tone": 3.4, "length": 0.8}
    sent = len(server.requests)
    Path("faithful.md").write_text(rubric + "\nBe strict.")
    status, _, err = ragbed("run", path)
    assert status == 0, err
    assert "judge faithful" in err
    assert [body["messages"][0]["content"].count("Be strict.") for body, _ in server.requests[sent:]] == [1] * 4


def test_the_strategies_with_an_instruction_and_a_system_message_run(serve, town, ragbed):
    server = serve(town.reply)
    text, = (one for one in blocks("strategies.md", "yaml") if "clerk" in one)
    made = ragbed.json("run", town.config(server.url, reasoning=yaml.safe_load(text)["reasoning"]))
    assert [cell["reasoning"] for cell in made["cells"]] == [
        "direct", "direct(instruction=Answer in one sentence.)", "direct(instruction=Answer in a table.)", "clerk"]
    assert sum("careful insurance clerk" in body["messages"][0]["content"] for body, _ in server.requests) == 6
