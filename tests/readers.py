"""A reader whose use of its documents is known, and the questions that say which it uses and which it cites."""
import json
import re

# By the facts that the reader uses and sees, its answer; no answer holds another one.
WORDS = {"": "stone", "A": "sky", "B": "tree", "AB": "sea", "C": "fog"}
KOREAN = {"": "바위", "A": "하늘", "B": "나무", "AB": "바다", "C": "안개"}
# Question: the facts that are used, those that are cited, and the gold answer.
USES = {"honest": ("AB", "AB", "sea"), "partial": ("AB", "A", "sea"), "padded": ("A", "AC", "sky"),
        "by heart": ("", "AB", "stone"), "either": ("A|B", "AB", "sky"), "misled": ("C!", "CD", "sky"),
        "uncited": ("A", "", "sky"), "korean": ("AB", "AC", "바다"), "declined": ("refuses", "", "sky")}


def hotpot(path, names=tuple(USES)):
    """Write the questions in HotpotQA's form, each with four paragraphs, one fact in each."""
    path.mkdir()
    rows = [{"_id": name.replace(" ", "-"), "question": f"What does the reader called {name} say?",
             "answer": USES[name][2], "type": "bridge", "level": "easy", "supporting_facts": [["A", 0]],
             "context": [[fact, [f"Fact {fact} of {name}.", " 사실입니다." if name == "korean" else " It is so."]]
                         for fact in "ABCD"]} for name in names]
    (path / "dev.json").write_text(json.dumps(rows))
    return {"kind": "hotpotqa", "path": str(path)}


def read(body, cites=None):
    """The reply of the reader to a request: it rests on the facts in the prompt alone. `cites` are facts that it cites
    in the place of the question's own."""
    prompt = body["messages"][-1]["content"]
    name = re.findall(r"called (.+?) say\?", prompt)[-1]
    numbers = {fact: int(number) for number, fact in re.findall(rf"^\[(\d+)\]\n.*\n?Fact ([A-D]) of {name}", prompt,
                                                                re.MULTILINE)}
    used, own, _ = USES[name]
    if used == "refuses":
        return "<Answer>I cannot answer because the question is unanswerable with the documents.</Answer>"
    words = KOREAN if name == "korean" else WORDS
    if used == "A|B":
        said = "A" if {"A", "B"} & set(numbers) else ""
    elif used == "C!":
        said = "C" if "C" in numbers else "A"
    else:
        said = "".join(fact for fact in used if fact in numbers)
    marks = "".join(f"[{numbers[fact]}]" for fact in cites or own if fact in numbers)
    return f"<Answer>{words[said]} {marks}</Answer>"
