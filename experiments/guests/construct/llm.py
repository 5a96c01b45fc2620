"""Asking writers, solvers and judges within a stage: structured replies with one repair, and solvers that are ragbed's
own strategies over evidence that is put before them."""
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
from ragbed.strategies.parts.lockstep import Lockstep
from ragbed.strategies.prompting import fill_framed
from ragbed.strategies.types import Draft, Gathering, Generate, Message, Passage, Reply, Rules, Task, driven

Fields = TypeVar("Fields", bound=BaseModel)
WRITER, SOLVER, JUDGE = "writer", "solver", "judge"
LABELS = "ABCDEFGHIJ"


@cache
def load_prompt(name: str) -> str:
    """Read the text of `prompts/<name>.md`."""
    file = resources.files("ragbed.experiments.guests.construct.prompts").joinpath(f"{name}.md")
    return file.read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that a role has taken: what it was asked, and what it replied."""

    prompt: str
    reply: str


def ask_structured(role: str, purpose: str, fields: type[Fields], name: str, given: Mapping[str, str],
               before: Sequence[Turn] = (), sample: int = 0,
               most: int | None = None) -> Generator[Any, Any, tuple[Fields, Turn]]:
    """Ask for a reply that fits a model's JSON Schema, and once more, with what is amiss, where it does not fit; return
    the reply, and the turn to go on from. `role` is WRITER, or `solver 1`, `judge 2` and so on; what strangers wrote
    stands in the named prompt between marks; `sample` tells draws with an equal prompt apart; `most` is the largest
    integer of the reply, such as the number of lines that are shown. Raises Dropped where neither reply fits."""
    asked = fill_framed(load_prompt(name), name, given)
    messages = tuple(message for turn in before for message in
                     (Message("user", (turn.prompt,)), Message("assistant", (turn.reply,))))
    call = Generate((*messages, Message("user", (asked,))), f"{role}: {purpose}", schema=strict_schema(fields, most),
                    sample=sample)
    reply: Reply = yield call
    found = _validate(fields, reply)
    if isinstance(found, str):
        again = fill_framed(load_prompt("repair"), "repair", {"amiss": found})
        reply = yield replace(call, purpose=f"{role}: {purpose}, repaired", messages=(
            *call.messages, Message("assistant", (reply.text or "(nothing)",)), Message("user", (again,))))
        found = _validate(fields, reply)
    if isinstance(found, str):
        raise Dropped(f"the {role}'s reply does not fit: {found}")
    return found, Turn(asked, reply.text)


_UNSENT = ("title", "default", "minLength", "description", "$defs")


@cache
def strict_schema(fields: type[BaseModel], most: int | None = None) -> Mapping[str, Any]:
    """Return the JSON Schema of a reply as servers take it that follow it strictly: nothing refers elsewhere, every
    field is required and no other allowed, and integers go from 1, or their own least, to `most`. What it leaves out
    is checked when the reply is there."""
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
    """The reply's fields, or what is amiss with it."""
    parsed = reply.parsed if reply.parsed is not None else parse_object(reply.text)
    if parsed is None:
        return "it is cut short" if reply.finish_reason == "length" else "it is no JSON object"
    try:
        return fields.model_validate(parsed)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}"


def solve(role: str, item: Item, chunks: Sequence[Chunk], strategy: str = "direct",
           rules: Rules | None = None) -> Generator[Any, Any, Draft]:
    """Have a solver answer an item's question by a built-in reasoning strategy from these chunks alone; from none,
    closed-book. By default the rules are `grounded`, which allows a refusal, or `choice` where there are options."""
    def placed(task: Task, query: str) -> Gathering:
        return tuple(Passage(number, chunk) for number, chunk in enumerate(chunks, 1))
        yield  # a retrieval strategy is a generator, and this one asks for nothing

    labels = tuple(zip(LABELS, item.options, strict=False))
    default: Rules = ("choice" if labels else "grounded") if chunks else "closed-book"
    task = Task(item.id, item.question, placed, rules=rules or default, options=labels, placed=True, brief=True,
                about=str(item.made.get("about", "")))
    return driven(REASONING[strategy](task), lambda asked: replace(asked, purpose=f"{role}: {asked.purpose}")
                  if isinstance(asked, Generate) else asked)


def in_parallel(recipes: Sequence[StageRecipe]) -> StageRecipe:
    """Play recipes side by side, so that their calls go out together, and return what each returns, in order."""
    return Lockstep().run(recipes)
