"""What five strategies over the same evidence cost a local model: prompt tokens sent, and those it computed.

    python bench/prefix.py [--questions 1] [--chunks 4] [--max-tokens 64] [--model smollm2-135m] [--json]

Every question of the demo set is asked with each strategy in turn, over the same chunks. llama.cpp's own timings
say of each call how many tokens of the prompt it computed (`prompt_n`) and had cached (`cache_n`). All prompts of a
question begin alike, up to the end of the documents; its own tokeniser says how many tokens stand after what all of
them share. Ends with status 1 where a call after the first strategy's had more computed than that.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from ragbed.agents import Assistant, AssistantSettings, CallLimits, Limits, LocalSettings
from ragbed.agents.client import Completion, ModelClient
from ragbed.agents.local_server import LocalServer
from ragbed.agents.models import resolve
from ragbed.agents.replies import Tell, free
from ragbed.experiments.benchmarks.jsonl import load_demo
from ragbed.retrieval import Index, IndexSettings, build_index
from ragbed.strategies import CRESTS, Generate, Message


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `timings` are llama.cpp's own."""

    messages: Sequence[Message]
    timings: Mapping[str, Any]


@dataclass(slots=True)
class Row:
    """Prompt tokens of one strategy over all questions. `after`: those after what all prompts share."""

    strategy: str
    calls: int = 0
    sent: int = 0
    computed: int = 0
    after: int = 0
    worst: int = 0  # tokens that a call had computed beyond those after the shared prefix


class Timed(ModelClient):
    """A client that keeps what the server says of its own speed."""

    calls: list[Call]

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None,
                       repeat: int = 0, tell: Tell | None = None) -> Completion:
        done = await super().complete(action, max_tokens=max_tokens, deadline=deadline, repeat=repeat, tell=tell)
        self.calls.append(Call(action.messages, done.timings))
        return done


def main() -> None:
    options = _options()
    rows = asyncio.run(_measured(options))
    if options.json:
        print(json.dumps([{name: getattr(row, name) for name in Row.__slots__} for row in rows], indent=2))
    else:
        print(_table(rows, options))
    if any(row.worst > 0 for row in rows[1:]):
        sys.exit("a strategy had more computed than stands after the shared prefix")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=1)
    parser.add_argument("--chunks", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--model", default="smollm2-135m", help="a local model: a name of the catalogue or gguf:PATH")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


async def _measured(options: argparse.Namespace) -> list[Row]:
    target, demo = resolve(options.model), load_demo()
    assert target.weights is not None, "a local model is needed"
    assert demo.corpus is not None
    server = LocalServer(target.weights, LocalSettings())
    client = Timed(target.name, target.identity, target.served, server, free, CallLimits(concurrency=1))
    try:
        with tempfile.TemporaryDirectory() as folder:
            index = Path(folder) / "index"
            build_index([demo.corpus], index, IndexSettings())
            assistants = _assistants(index, client, options)
            rows = {name: Row(name) for name in assistants}
            for question in demo.questions[:options.questions]:
                await _ask_all(question.text, assistants, rows, client, server)
    finally:
        await client.aclose()
    return list(rows.values())


def _assistants(index: Path, client: Timed, options: argparse.Namespace) -> dict[str, Assistant]:
    """One for each strategy, over one index and one client."""
    opened, limits = Index.open(index), Limits(max_tokens=options.max_tokens)
    return {name: Assistant(AssistantSettings(index=index, reasoning=name, k=options.chunks, limits=limits), opened,
                            client) for name in CRESTS}


async def _ask_all(question: str, assistants: Mapping[str, Assistant], rows: Mapping[str, Row], client: Timed,
                   server: LocalServer) -> None:
    """Ask with each strategy, and count what was sent and computed."""
    made: list[tuple[Row, Call, list[int]]] = []
    for name, assistant in assistants.items():
        client.calls = []
        await assistant.ask(question)
        made += [(rows[name], call, await _tokens(server, call.messages)) for call in client.calls]
    shared = min(_common(tokens, made[0][2]) for _, _, tokens in made)
    for row, call, tokens in made:
        _count(row, call, len(tokens), len(tokens) - shared)


def _count(row: Row, call: Call, sent: int, after: int) -> None:
    computed, cached = call.timings["prompt_n"], call.timings["cache_n"]
    assert computed + cached == sent, (computed, cached, sent)
    row.calls += 1
    row.sent += sent
    row.computed += computed
    row.after += after
    row.worst = max(row.worst, computed - after)


async def _tokens(server: LocalServer, messages: Sequence[Message]) -> list[int]:
    """The prompt as the model reads it, by the server's own template and tokeniser."""
    at = await server.address()
    said = {"messages": [{"role": message.role, "content": message.content} for message in messages]}
    async with httpx2.AsyncClient(base_url=at.url.removesuffix("/v1"), trust_env=False, timeout=60,
                                  headers={"Authorization": f"Bearer {at.key}"}) as http:
        prompt = (await http.post("/apply-template", json=said)).raise_for_status().json()["prompt"]
        asked = {"content": prompt, "add_special": True, "parse_special": True}
        tokens: list[int] = (await http.post("/tokenize", json=asked)).raise_for_status().json()["tokens"]
    return tokens


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two prompts begin with alike."""
    return next((at for at, (ours, theirs) in enumerate(zip(one, other, strict=False)) if ours != theirs),
                min(len(one), len(other)))


def _table(rows: Sequence[Row], options: argparse.Namespace) -> str:
    lines = [f"{options.model}, questions: {options.questions}; prompt tokens", "",
             f"{'strategy':18}{'calls':>7}{'sent':>9}{'computed':>10}{'after the shared prefix':>25}{'saved':>8}"]
    for row in rows:
        lines.append(f"{row.strategy:18}{row.calls:>7}{row.sent:>9,}{row.computed:>10,}{row.after:>25,}"
                     f"{1 - row.computed / row.sent:>8.1%}")
    sent, computed = sum(row.sent for row in rows[1:]), sum(row.computed for row in rows[1:])
    lines += ["", f"Strategies two to {len(rows)}: of {sent:,} prompt tokens sent {computed:,} computed, "
                  f"{1 - computed / sent:.1%} saved."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
