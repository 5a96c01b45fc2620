"""Ask writers, solvers and judges within a stage: structured replies with one repair, and ragbed's own strategies."""
from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ragbed.agents.replies import parse_object
from ragbed.documents.types import Chunk
from ragbed.experiments.guests.construct.stages import Dropped, StageRecipe
from ragbed.experiments.guests.review.items import Item
from ragbed.strategies.catalogue import REASONING
from ragbed.strategies.parts.conversation import Lockstep
from ragbed.strategies.prompting import fill_untrusted_text
from ragbed.strategies.types import Draft, Gathering, Generate, Message, Passage, Reply, Rules, Task, drive

Fields = TypeVar("Fields", bound=BaseModel)
WRITER, SOLVER, JUDGE = "writer", "solver", "judge"
LABELS = "ABCDEFGHIJ"


@cache
def load_prompt(name: str) -> str:
    """Return the text of `prompts/<name>.md`."""
    file = resources.files("ragbed.experiments.guests.construct.prompts").joinpath(f"{name}.md")
    return file.read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and the reply to it."""

    prompt: str
    reply: str


def ask_structured(role: str, purpose: str, fields: type[Fields], name: str, given: Mapping[str, str],
                   before: Sequence[Turn] = (), most: int | None = None) -> Generator[Any, Any, tuple[Fields, Turn]]:
    """Ask for a reply that fits the JSON Schema of `fields`. If it does not fit, ask once more with the reason.

    Args:
        role: `writer`, or `solver 1`, `judge 2` and so on.
        name: name of the prompt; its fields are delimited, because they are untrusted text.
        most: the largest integer that the reply may contain, such as the number of lines shown.

    Returns the reply, and the turn to continue from. Raises Dropped if neither reply fits.
    """
    asked = fill_untrusted_text(load_prompt(name), name, given)
    messages = tuple(message for turn in before for message in
                     (Message("user", (turn.prompt,)), Message("assistant", (turn.reply,))))
    call = Generate((*messages, Message("user", (asked,))), f"{role}: {purpose}", schema=strict_schema(fields, most))
    reply: Reply = yield call
    found = _validate(fields, reply)
    if isinstance(found, str):
        again = fill_untrusted_text(load_prompt("repair"), "repair", {"problem": found})
        reply = yield replace(call, purpose=f"{role}: {purpose}, repaired", messages=(
            *call.messages, Message("assistant", (reply.text or "(nothing)",)), Message("user", (again,))))
        found = _validate(fields, reply)
    if isinstance(found, str):
        raise Dropped(f"the {role}'s reply is invalid: {found}")
    return found, Turn(asked, reply.text)


_UNSENT = ("title", "default", "minLength", "description", "$defs")


@cache
def strict_schema(fields: type[BaseModel], most: int | None = None) -> Mapping[str, Any]:
    """Return the JSON Schema of a reply in the form that strict servers accept.

    It has no references, every field is required, no other field is allowed, and integers range from 1 (or their own
    minimum) to `most`. Constraints that it leaves out are checked on the reply.
    """
    whole = fields.model_json_schema()
    definitions = whole.get("$defs", {})

    def strict(schema: Any) -> Any:
        if isinstance(schema, list):
            return [strict(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return strict(definitions[schema["$ref"].rpartition("/")[2]])
        kept = {name: {key: strict(one) for key, one in inner.items()} if name == "properties" else strict(inner)
                for name, inner in schema.items() if name not in _UNSENT}
        more = {"required": list(kept["properties"]), "additionalProperties": False} if "properties" in kept else {}
        bound = {"minimum": 1, "maximum": most} if most is not None and kept.get("type") == "integer" else {}
        return bound | kept | more

    return dict(strict(whole))


def _validate(fields: type[Fields], reply: Reply) -> Fields | str:
    """Return the reply's fields, or why they are invalid."""
    parsed = reply.parsed if reply.parsed is not None else parse_object(reply.text)
    if parsed is None:
        return "it is truncated" if reply.finish_reason == "length" else "it is not a JSON object"
    try:
        return fields.model_validate(parsed)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}"


def solve(role: str, item: Item, chunks: Sequence[Chunk], strategy: str = "direct",
          rules: Rules | None = None) -> Generator[Any, Any, Draft]:
    """Let a solver answer an item's question with a built-in reasoning strategy from these chunks only, or closed-book
    without chunks. The default rules are `grounded`, which allows a refusal, or `choice` for an item with options."""
    def placed(task: Task, query: str) -> Gathering:
        return tuple(Passage(number, chunk) for number, chunk in enumerate(chunks, 1))
        yield  # makes this a generator, as retrieval strategies are

    labels = tuple(zip(LABELS, item.options, strict=False))
    default: Rules = ("choice" if labels else "grounded") if chunks else "closed-book"
    task = Task(item.id, item.question, placed, rules=rules or default, options=labels, placed=True, brief=True,
                about=str(item.made.get("about", "")))
    return drive(REASONING[strategy](task), lambda asked: replace(asked, purpose=f"{role}: {asked.purpose}")
                 if isinstance(asked, Generate) else asked)


def in_parallel(recipes: Sequence[StageRecipe]) -> StageRecipe:
    """Play recipes in parallel, so that their calls are sent together. Returns their results in order."""
    return Lockstep().run(recipes)
