"""`ragbed ask`."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import DEFAULT_MODEL, AsJson, Asked, Conditions, IndexFolder, ModelName, RetrieverText

if TYPE_CHECKING:
    from agents.assistant import AssistantSettings
    from agents.types import Answer
    from retrieval.index import Index
    from strategies.choosing import Family


def ask(question: Asked, index: IndexFolder,
        model: ModelName = DEFAULT_MODEL,
        reasoning: Annotated[str, typer.Option(help="See `ragbed list strategies`.")] = "chain_of_thought",
        retrieval: Annotated[str, typer.Option(help="See `ragbed list strategies`.")] = "once",
        k: Annotated[int, typer.Option("-k", min=1, help="Chunks per search.")] = 5,
        retriever: RetrieverText = "dense", where: Conditions = None,
        max_tokens: Annotated[int, typer.Option(min=1, help="Limit on one reply.")] = 1024,
        temperature: Annotated[str, typer.Option(help="Of sampling; `none` sends none, for reasoning models.")] = "0",
        trace: Annotated[bool, typer.Option("--trace", help="Show every step with its prompt.")] = False,
        json: AsJson = False) -> None:
    """Answer one question from an index, cited or refused. Exit status 1: neither, for the reason that is shown."""
    from agents.assistant import AssistantSettings
    from agents.settings import Limits, ModelSettings
    from experiments.settings.how import finding
    from experiments.terminal.display import print_json, say
    from experiments.terminal.passages import place
    from experiments.terminal.trace import Places, show_steps, step_row

    kind, conditions = finding(retriever, where or [])
    settings = AssistantSettings(index=index, model=model, reasoning=_strategy("reasoning", reasoning),
                                 retrieval=_strategy("retrieval", retrieval), k=k,
                                 retriever=kind, where=conditions,
                                 limits=Limits(max_tokens=max_tokens),
                                 calls=ModelSettings(temperature=_temperature(temperature)))
    answer, opened, judged = asyncio.run(_ask(settings, question))
    row = answer_row(answer, opened, model)
    row["notes"] += judged
    if json:
        print_json({**row, "trace": [step_row(step) for step in answer.trace]} if trace else row)
    else:
        if trace:
            show_steps(answer.trace, Places({passage["number"]: place(passage) for passage in row["evidence"]}))
            say("== answer")
        _show(row)
    if answer.outcome not in ("answered", "refused"):
        raise typer.Exit(1)


def _strategy(family: Family, text: str) -> Any:
    """A strategy by its name, or by settings in YAML such as `{kind: self_consistency, of: direct}`."""
    from experiments.settings.file import read_value
    from strategies.choosing import chosen

    return chosen(family, read_value(text, f"--{family}")).said


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


async def _ask(settings: AssistantSettings, question: str) -> tuple[Answer, Index, list[str]]:
    from agents.assistant import Assistant

    async with Assistant.open(settings) as assistant:
        return await assistant.ask(question), assistant.index, assistant.on_judges()


def answer_row(answer: Answer, index: Index, model: str) -> dict[str, Any]:
    """The answer as `ask --json` prints it."""
    from dataclasses import asdict

    from experiments.notes import on_models
    from experiments.running.results import used
    from experiments.terminal.passages import chunk_row

    evidence = {passage.number: {"number": passage.number, **chunk_row(passage.chunk, index)}
                for passage in answer.evidence}
    return {"outcome": answer.outcome, "answer": answer.text, "refused": answer.refused,
            "citations": [evidence[number] for number in answer.cited],
            "invalid_citations": list(answer.invalid_citations), "evidence": list(evidence.values()),
            "failure": answer.failure.message if answer.failure else None,
            "model": model, "usage": asdict(used(answer)), "seconds": round(answer.cost.seconds, 3),
            "notes": on_models([model])}


def _show(row: dict[str, Any]) -> None:
    from experiments.terminal.display import note, say
    from experiments.terminal.passages import place

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
