"""A pipeline that is a Python function, and the calling of Python code of others."""
from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, model_validator

from ragbed.agents.pipelines.base import FIELDS, Channel, PipelineSettings
from ragbed.documents.errors import CallError, RagbedError, SettingsError
from ragbed.documents.http import Response
from ragbed.documents.user_code import UserCode
from ragbed.strategies.settings.plugins import file_of
from ragbed.strategies.settings.source import executed, hash_of, parameters_of, place_of

if TYPE_CHECKING:
    from ragbed.agents.settings import CallLimits

_UNLIKE_JSON = "it returned what has no form in JSON: {}"


def _in_file(factory: str) -> str:
    if file_of(factory) is None:
        raise ValueError(f"{factory!r} names no function of a file; write FILE.py:NAME")
    return factory


class OfFile(PipelineSettings):
    """A pipeline that a Python file makes. The file is executed, with all that the user may do, where a run calls it.

    Attributes:
        factory: `FILE.py:NAME`, relative to the current folder.
    """

    factory: Annotated[str, AfterValidator(_in_file)]

    @property
    def sources(self) -> Sequence[str]:
        """The hash of the file."""
        return [hash_of(self._place[0])]

    @property
    def made(self) -> Any:
        """What the file has under the name; SettingsError where it has nothing, or its code fails."""
        file, name = self._place
        module, _ = executed(place_of(file), str(file))
        if (made := getattr(module, name, None)) is None:
            raise SettingsError(f"pipeline {self.name}: {file} has no {name}")
        return made

    @property
    def _place(self) -> Any:
        return file_of(self.factory)


class Python(OfFile):
    """A function, plain or async, that is called with those of `question`, `options`, `history`, `documents` and `id`
    that are its parameters, or with the fields of `request`, and returns an answer, or an object with one."""

    kind: Literal["python"] = "python"

    @model_validator(mode="before")
    @classmethod
    def _by_parameters(cls, fields: Any) -> Any:
        """The request that the function's parameters ask for, as its source has them."""
        place = file_of(str(fields.get("factory", ""))) if isinstance(fields, dict) else None
        if place is None or "request" in fields:
            return fields
        file, function = place
        try:
            names = parameters_of(place_of(file), str(file), function)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        asked = {name: f"{{{name}}}" for name in FIELDS if name in names}
        if names and not asked:
            raise ValueError(f"{function} has the parameters {', '.join(names)}; call them {', '.join(FIELDS)}, or "
                             "write a `request` with what each is")
        return {**fields, "request": asked} if asked else fields

    def open(self, limits: CallLimits) -> CodeChannel:
        """Load the function; SettingsError where it cannot be called."""
        made = self.made
        if not callable(made):
            raise SettingsError(f"pipeline {self.name}: {self.factory} is no function")
        return CodeChannel(self, call=lambda body: made(**body) if isinstance(body, dict) else made(body))


def tokens(*usages: Any) -> dict[str, int]:
    """Return the sums of what calls of a model used, whatever a framework calls the two."""
    return {name: sum(next((count for count in (field_of(used, name), field_of(used, other)) if type(count) is int), 0)
                      for used in usages)
            for name, other in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))}


def field_of(of: Any, name: str) -> Any:
    """Return a field of a mapping or an object; None where it has none."""
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _plain(value: Any) -> Any:
    """An object of pydantic or a dataclass as JSON has it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    as_json = getattr(value, "item", None) or getattr(value, "isoformat", None)  # a number of NumPy, a date
    if callable(as_json):
        return as_json()
    raise TypeError(f"a {type(value).__name__}")


@dataclass(frozen=True)
class CodeChannel(Channel):
    """Calls Python code of others: async code on the event loop, else in a thread of its own. One that takes no notice
    of its deadline goes on in its thread, and its result is thrown away."""

    call: Callable[[Any], Any] = lambda body: None
    plain: Callable[[Any], Any] = _plain

    async def post(self, body: Any) -> Response:
        """Call once. Raises CallError, `pipeline`, where the code fails, unless its error has the status of a server
        that may be asked again."""
        try:
            came = await self._in_thread(body)
            if inspect.isawaitable(came):
                with self._foreign:
                    came = await came
        except CallError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError from None  # in time or not is the caller's to say
            if (status := _status(error)) == 429 or 500 <= status < 600:
                return Response(status, {}, json.dumps({"error": {"message": str(error)}}).encode())
            raise
        try:
            return Response(200, {}, json.dumps(came, default=self.plain, allow_nan=False).encode())
        except (TypeError, ValueError, RecursionError) as error:
            raise CallError(f"{self.settings.name}: {_UNLIKE_JSON.format(error)}", "pipeline") from None

    @property
    def _foreign(self) -> UserCode:
        return UserCode(lambda said: CallError(f"{self.settings.name}: {said}", "pipeline"))

    async def _in_thread(self, body: Any) -> Any:
        """Call in a thread that keeps no process from ending, unlike those of an executor."""
        result: Future[Any] = Future()

        def work() -> None:
            try:
                with self._foreign:
                    came = self.call(body)
            except RagbedError as error:
                result.set_exception(error)
            else:
                result.set_result(came)

        result.set_running_or_notify_cancel()  # whoever does not wait any more finds no error in the thread
        threading.Thread(target=work, name=self.settings.name, daemon=True).start()
        return await asyncio.wrap_future(result)


def _status(error: BaseException | None) -> int:
    """The status of a server among what led to an error; 0 where there is none."""
    while error is not None:
        if type(status := getattr(error, "status_code", None)) is int:
            return status
        error = error.__cause__
    return 0
