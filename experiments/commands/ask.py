"""`ragbed ask`."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import DEFAULT_MODEL, AsJson, Asked, IndexFolder, ModelName

if TYPE_CHECKING:
    from agents.assistant import AssistantSettings
    from agents.types import Answer, Step
    from retrieval.index import Index


def ask(question: Asked, index: IndexFolder,
        model: ModelName = DEFAULT_MODEL,
        reasoning: Annotated[str, typer.Option(help="See `ragbed list strategies`.")] = "chain_of_thought",
        retrieval: Annotated[str, typer.Option(help="See `ragbed list strategies`.")] = "once",
        k: Annotated[int, typer.Option("-k", min=1, help="Chunks per search.")] = 5,
        max_tokens: Annotated[int, typer.Option(min=1, help="Limit on one reply.")] = 1024,
        temperature: Annotated[str, typer.Option(help="Of sampling; `none` sends none, for reasoning models.")] = "0",
        trace: Annotated[bool, typer.Option("--trace", help="Show every step with its prompt.")] = False,
        json: AsJson = False) -> None:
    """Answer one question from an index, cited or refused. Exit status 1: neither, for the reason that is shown."""
    from agents.assistant import AssistantSettings
    from agents.settings import Limits, ModelSettings
    from experiments.display import print_json
    from strategies import catalogue

    catalogue.reasoning(reasoning)
    catalogue.retrieval(retrieval)
    settings = AssistantSettings(index=index, model=model, reasoning=reasoning, retrieval=retrieval, k=k,
                                 limits=Limits(max_tokens=max_tokens),
                                 calls=ModelSettings(temperature=_temperature(temperature)))
    answer, opened = asyncio.run(_ask(settings, question))
    row = answer_row(answer, opened, model)
    if json:
        print_json({**row, "trace": [_step_row(step) for step in answer.trace]} if trace else row)
    else:
        if trace:
            _show_trace(answer, {passage["number"]: passage for passage in row["evidence"]})
        _show(row)
    if answer.outcome not in ("answered", "refused"):
        raise typer.Exit(1)


def _temperature(text: str) -> float | None:
    """A number of at least 0, or None for `none`."""
    from documents.errors import SettingsError

    if text.lower() == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise SettingsError(f"--temperature {text!r}: give a number of at least 0, or none")
    return value


async def _ask(settings: AssistantSettings, question: str) -> tuple[Answer, Index]:
    from agents.assistant import Assistant

    async with Assistant.open(settings) as assistant:
        return await assistant.ask(question), assistant.index


def answer_row(answer: Answer, index: Index, model: str) -> dict[str, Any]:
    """The answer as `ask --json` prints it."""
    from dataclasses import asdict

    from experiments.notes import on_models
    from experiments.passages import chunk_row
    from experiments.results import used

    evidence = {passage.number: {"number": passage.number, **chunk_row(passage.chunk, index)}
                for passage in answer.evidence}
    return {"outcome": answer.outcome, "answer": answer.text, "refused": answer.refused,
            "citations": [evidence[number] for number in answer.cited],
            "invalid_citations": list(answer.invalid_citations), "evidence": list(evidence.values()),
            "failure": answer.failure.message if answer.failure else None,
            "model": model, "usage": asdict(used(answer)), "seconds": round(answer.cost.seconds, 3),
            "notes": on_models([model])}


def _step_row(step: Step) -> dict[str, Any]:
    """One step as `ask --trace --json` prints it."""
    from dataclasses import asdict

    from agents.types import SearchStep

    if isinstance(step, SearchStep):
        return {"kind": "search", **asdict(step)}
    messages = [{"role": message.role, "content": message.content} for message in step.messages]
    return {"kind": "generate", **asdict(step), "messages": messages}


def _show(row: dict[str, Any]) -> None:
    from experiments.display import note, say
    from experiments.passages import place

    say(row["answer"] or f"No answer: {row['failure'] or row['outcome']}.")
    for citation in row["citations"]:
        say(f"  [{citation['number']}] {place(citation)}")
    if row["invalid_citations"]:
        say(f"  cited but never shown: {row['invalid_citations']}")
    usage = row["usage"]
    note(f"{row['outcome']} by {row['model']}: {usage['calls']} calls, {usage['prompt_tokens']} + "
         f"{usage['completion_tokens']} tokens, {row['seconds']} s")
    for text in row["notes"]:
        note(text)


def _show_trace(answer: Answer, evidence: dict[int, dict[str, Any]]) -> None:
    from agents.types import SearchStep
    from experiments.display import say
    from experiments.passages import place

    for count, step in enumerate(answer.trace, 1):
        if isinstance(step, SearchStep):
            ended = f" failed: {step.failure.message}" if step.failure else f" found {list(step.found)}"
            say(f"== step {count}: search {step.query!r}{ended}")
            for number in step.found:
                say(f"   [{number}] {place(evidence[number])}")
            continue
        say(f"== step {count}: {step.purpose}, {len(step.messages)} messages, documents shown {list(step.shown)}")
        for message in step.messages:
            say(f"-- {message.role}\n{message.content}")
        say(f"-- reply ({step.finish_reason or step.failure})\n{step.text}")
    say("== answer")
