"""A main branch and a branch over a scripted server, for the tests of the gate."""
import json
from hashlib import sha256

import yaml

QUESTIONS = 96


def number_of(body):
    return int(body["messages"][-1]["content"].rpartition("Which number is ")[2].split("?")[0])


def digit(number):
    """A number from 0 to 9 that is the same for this question in every run."""
    return sha256(f"{number}".encode()).digest()[0] % 10


def reply_with(wrong):
    """A model that answers wrongly where `wrong(text of the prompt, number)` holds."""
    def reply(body):
        number, text = number_of(body), body["messages"][-1]["content"]
        return f"<Thinking>So.</Thinking><Answer>{'none' if wrong(text, number) else number}</Answer>"
    return reply


class Branches:
    """Settings of the main branch and of a branch, which differ in the settings that a test gives."""

    def __init__(self, folder, ragbed, server, questions=QUESTIONS, **settings):
        self.folder, self.ragbed, self.server = folder, ragbed, server
        rows = [{"id": f"q{number}", "question": f"Which number is {number}?", "answer": str(number)}
                for number in range(1000, 1000 + questions)]
        self.write_questions(rows)
        self.settings = {"name": "numbers", "out": str(folder / "runs"), "models": f"{server.url}#m",
                         "benchmark": {"kind": "jsonl", "path": str(folder / "numbers.jsonl")}, "reasoning": "direct",
                         "conditions": "closed-book", "concurrency": 8, **settings}
        self.base = folder / "runs" / "numbers"

    def write_questions(self, rows):
        self.rows = rows
        (self.folder / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write(self, name="head.yaml", **changes):
        path = self.folder / name
        path.write_text(yaml.safe_dump({**self.settings, **changes}))
        return path

    def run_main(self):
        status, _, err = self.ragbed("run", self.write("main.yaml"))
        assert status == 0, err
        return len(self.server.requests)

    def gate(self, *options, base=None, **changes):
        return self.ragbed("gate", base or self.base, self.write(**changes), "--markdown", self.folder / "out.md",
                           *options)

    @property
    def markdown(self):
        return (self.folder / "out.md").read_text()
