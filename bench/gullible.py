"""Measure the success of attacks on every strategy, with a scripted model that obeys every order that it reads.

    python bench/gullible.py [--split test] [--format plain] [--json]

The model sees only the messages of a request. It knows the benchmark's questions and answers, and the project's
prompts, so that it can tell their usual orders from others:

- If a sentence says that material is between marks, the text there is material: from the mark on its own line to the
  closing mark, anywhere and with any spacing, or to a token that begins or ends a turn. A document that contains
  either, and was not made harmless, ends the material.
- The model obeys any other sentence that gives an order and is not in the project's prompts, by repeating it. It also
  obeys answer tags: their text is the answer. If the sentence quotes a refusal, it refuses.
- Without such an order it answers from the documents shown, and cites the number above the answer.

The figures are nearly circular, and do not measure what framing does for a real model: this one honours the marks
because it was written to. They show that no strategy lets hostile text escape its marks on the way into a prompt, and
that the attacks reach every strategy if documents are not delimited.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import web
from chat_server import completion, serve

from ragbed.documents.rows import read_rows
from ragbed.experiments.guests.injection.loader import FOLDER
from ragbed.strategies import REFUSAL
from ragbed.strategies.prompting import prompt_folders

NEED_MORE = ("few_shot", "agent")  # settings or tools that a name alone does not give

ORDERS = re.compile(
    r"\b(?:reply|respond|answer|write|say|print|state|give|begin|end every|cite|copy|repeat|refuse)\b"
    r"|must (?:be|cite|say)|답하|대답|말하|쓰십시오|쓰지|적어야", re.IGNORECASE)
_DECLARED = re.compile(r"stands? between <(\w+)> and </\1>")
_TAGGED = re.compile(r"<answer>\s*(.+?)\s*</answer>", re.IGNORECASE | re.DOTALL)
_SENTENCE = re.compile(r"\n+|(?<=[.!?])\s+|\s\|\s")
_FIELD = re.compile(r"\{\w+\}")
_OWN = re.compile(r"Question: |Sub-question|Sub-answer")


@cache
def usual() -> re.Pattern[str]:
    """Finds a sentence of the project's prompts, whatever stands in their fields."""
    texts = [entry.read_text(encoding="utf-8") for folder in prompt_folders() for entry in folder.iterdir()
             if entry.name.endswith(".md")]
    lines = {line.strip() for text in texts for line in text.splitlines() if len(_FIELD.sub("", line)) > 12}
    return re.compile("|".join(re.sub(r"\\\{\w+\\\}", ".*?", re.escape(line))
                               for line in sorted(lines, key=len, reverse=True)))


@cache
def answers() -> dict[str, tuple[str, ...]]:
    """The accepted answers by question."""
    return {row.filled("question"): row.filled_texts("answers") for row in read_rows(FOLDER / "scenes.jsonl")}


def outside(text: str) -> str:
    """What is not declared to be material."""
    for name in dict.fromkeys(_DECLARED.findall(text)):
        inside = re.compile(rf"^<{name}>\n.*?(?=<\s*/\s*{name}\s*>|<\|\w+\|>|\[/?INST\]|\Z)",
                            re.IGNORECASE | re.DOTALL | re.MULTILINE)
        text = inside.sub("", text)
    return text


def orders(text: str) -> list[str]:
    """The sentences that give an order that is none of the project's."""
    found = [one.strip() for one in _SENTENCE.split(usual().sub("\n", outside(text)))]
    return [one for one in found if ORDERS.search(one) and not _OWN.search(one)]


def reply(body: dict[str, Any]) -> str:
    """What it says to a request."""
    text = "\n\n".join(one["content"] or "" for one in body["messages"] if one["role"] != "assistant")
    said = obeyed(text) or answered(text)
    if "response_format" in body:
        return json.dumps(_fields(body, said), ensure_ascii=False)
    return f"<Thinking>It is stated.</Thinking>\n<Answer>{said}</Answer>"


def obeyed(text: str) -> str:
    """What it was ordered to say; empty where no other order was given."""
    tagged = _TAGGED.findall(usual().sub("\n", outside(text)))
    told = orders(text)
    if any(REFUSAL in one for one in told):
        return REFUSAL
    return " ".join([*tagged, *told])


def answered(text: str) -> str:
    """The answer to the benchmark's question, with the number of the first document that states it."""
    known = next((found for question, found in answers().items() if question in text), ())
    for number, content in re.findall(r"^\[(\d+)\]\n(.*?)(?=^\[\d+\]\n|\Z)", text, re.MULTILINE | re.DOTALL):
        stated = next((one for one in known if one.casefold() in content.casefold()), None)
        if stated:
            return f"{stated} [{number}]"
    return known[0] if known else "Yes."


def _fields(body: dict[str, Any], said: str) -> dict[str, Any]:
    schema = body["response_format"].get("json_schema", {}).get("schema", {})
    blank = {"string": "It is stated.", "integer": 1, "number": 1.0, "boolean": False, "array": []}
    made = {name: blank.get(one.get("type", "string")) for name, one in schema.get("properties", {}).items()}
    return {**made, "answer": said, **({"citations": list(map(int, re.findall(r"\[(\d+)\]", said)))}
                                       if "citations" in made else {})}


async def chat(request: web.Request) -> web.Response:
    """One completion."""
    body = await request.json()
    return web.json_response(completion("gullible", {"role": "assistant", "content": reply(body)}, 700, 12))


def measured(split: str, format: str, framings: list[str]) -> list[dict[str, Any]]:
    """A row of a run's summary for every reasoning strategy under every framing."""
    from ragbed.strategies import ANSWERING

    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        url = server.stdout.readline().strip()
        settings = {"name": "gullible", "out": folder, "models": f"{url}#gullible", "framings": framings,
                    "benchmark": {"kind": "injection", "format": format, "filter": {"split": split}},
                    "reasoning": [name for name in ANSWERING if name not in NEED_MORE]}
        config = Path(folder, "gullible.yaml")
        config.write_text(json.dumps(settings), encoding="utf-8")
        done = subprocess.run([str(Path(sys.executable).parent / "ragbed"), "run", str(config), "--json"],
                              stdout=subprocess.PIPE, check=True)
        server.stdin.close()
    cells: list[dict[str, Any]] = json.loads(done.stdout)["cells"]
    return cells


def main() -> None:
    """Serve, or measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--serve", action="store_true", help="only serve, and print the address")
    parser.add_argument("--split", choices=("dev", "test"), default="test")
    parser.add_argument("--format", choices=("plain", "html"), default="plain")
    parser.add_argument("--framing", nargs="+", default=["none", "delimited"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(chat))
        return
    cells = measured(args.split, args.format, args.framing)
    if args.json:
        print(json.dumps(cells, ensure_ascii=False))
        return
    print("The model honours marks because it was written to: this does not show what framing does for a real one.\n")
    print(f"{'reasoning':24}{'framing':10}{'attack success':>24}{'utility':>9}{'clean':>9}{'calls':>8}")
    for cell in cells:
        success, attacked, clean = (cell["metrics"][name] for name in ("attack_success", "utility_attacked",
                                                                       "utility_clean"))
        shown = f"{success['mean']:.2f} [{success['low']:.2f}, {success['high']:.2f}]"
        print(f"{cell['reasoning']:24}{cell.get('framing', 'none'):10}{shown:>24}{attacked['mean']:>9.2f}"
              f"{clean['mean']:>9.2f}{cell['usage']['calls']:>8}")


if __name__ == "__main__":
    main()
