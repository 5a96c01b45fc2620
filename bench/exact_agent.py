"""Record the replies of an agent without mistakes: a program that plays the model, so that cells differ in their tools.

    python bench/exact_agent.py

It makes the recording `exact-agent` with the files of docs/tutorial-agents.md. Run it again when prompts change. The
program knows the right answers, and gives one only if a prompt showed it. Otherwise it refuses. Of these tools it uses
those that it has: `glossary` for the words of the question, `search` with the question, `grep` for the words that the
question quotes or else for all of its words, and `open` for the document with the most matching lines.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chat_server import completion
from record_demo import record
from tutorials import ROOT, steps

from ragbed.agents.cassette import ENDING, SHIPPED
from ragbed.experiments.settings.file import check_settings, read_content

_REFUSAL = "I cannot answer because the question is unanswerable with the documents."
_SMALL = {"a", "and", "as", "at", "by", "does", "for", "from", "given", "in", "is", "of", "on", "the", "to", "what"}
_CALL = re.compile(r"^(\w+): (\{.*\})", re.MULTILINE)


def words_of(question: str) -> list[str]:
    """Return what a question quotes, or else its words."""
    return re.findall("“([^”]+)”", question) or [
        word for word in re.findall(r"[\w'’]+", question) if word.casefold() not in _SMALL]


def reply(body: Mapping[str, Any], answers: Mapping[str, str]) -> str:
    """Return the next turn in the text protocol, or the answer. `answers` has the right one for each question."""
    _, first, *turns = (str(message["content"]) for message in body["messages"])
    question = max((one for one in answers if one in first), key=len)
    if turns and "<Answer>" in turns[-1]:
        return f"<Answer>{_answer(answers[question], turns)}</Answer>"
    made = {call[1] for text in turns[::2] for call in _CALL.finditer(text)}
    tools = {call[1] for call in _CALL.finditer(first)} - made | {"read_result"}
    thought, tool, arguments = _next_step(question, tools, made, turns)
    return f"Thought: {thought}\n{tool}" + (f": {json.dumps(arguments, ensure_ascii=False)}" if arguments else "")


def _next_step(question: str, tools: set[str], made: set[str], turns: Sequence[str]) -> tuple[str, str, dict[str, str]]:
    last = turns[-1] if turns else ""
    if handle := re.search(r"whole result is in ([^\s:]+):", last):
        return "The result has to be read.", "read_result", {"result": handle[1]}
    if "glossary" in tools:
        return "The documents may use other words.", "glossary", {"question": question}
    if "search" in tools:
        return "Search for the question.", "search", {"query": question}
    if "grep" in tools:
        known = re.findall(r"^.+ = (.+)$", turns[1], re.MULTILINE) if turns else []
        return "Find these words.", "grep", {"pattern": "|".join(known or words_of(question))}
    found = Counter({name: int(count) for name, count in re.findall(r"([\w-]+\.md) \((\d+)\)", last)})
    if "open" in tools and found:
        return "Read the document with the most of them.", "open", {"document": found.most_common(1)[0][0]}
    return "Nothing more can be found.", "finish", {}


def _answer(value: str, turns: Sequence[str]) -> str:
    """Return the answer with the number of the first passage that shows it, or a refusal."""
    number = ""
    for line in "\n".join(turns[1:-1:2]).splitlines():
        number = line if re.fullmatch(r"\[\d+\]", line) else number
        if number and re.search(rf"\b{re.escape(value)}\b", line):
            return f"{value} {number}"
    return _REFUSAL


def _serve(answers: Mapping[str, str]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = reply(body, answers)
            prompt = sum(len(str(message["content"])) for message in body["messages"])  # four characters per token
            made = json.dumps(completion("exact-agent", {"role": "assistant", "content": text}, prompt // 4,
                                         len(text) // 4)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(made)))
            self.end_headers()
            self.wfile.write(made)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    cassette = (SHIPPED / f"exact-agent{ENDING}").resolve()
    about = {"model": "a program that plays an agent without mistakes"}
    with TemporaryDirectory() as folder, chdir(folder):
        os.symlink(ROOT / "experiments", "experiments")
        commands = []
        for said, content in steps(ROOT / "docs" / "tutorial-agents.md"):
            if isinstance(content, str):
                Path(said).write_text(content, encoding="utf-8")
            else:
                commands.append(said)
        subprocess.run(f"{sys.executable} -m {commands[0]}", shell=True, check=True, stdout=subprocess.DEVNULL)
        agents, mine = (read_content(Path(name)) for name in ("agents.yaml", "mine.yaml"))
        agents["include"] += [{"retriever": mine["retriever"], "reasoning": one} for one in mine["reasoning"][1:]]
        questions = map(json.loads, Path("twins/questions.jsonl").read_text(encoding="utf-8").splitlines())
        server = _serve({one["question"]: one["answers"][0] for one in questions})
        live = f"http://127.0.0.1:{server.server_address[1]}/v1#exact-agent"
        free = {"prices": {live: {"prompt": 0, "completion": 0}}}
        for changes in ({"models": live, "calls": free}, {}):  # again, since a recording should not name this server
            print(record(check_settings({**agents, "out": "runs", **changes}, "agents.yaml"), cassette, about))
        server.shutdown()


if __name__ == "__main__":
    main()
