"""Pipelines that are Python functions, and the `CodeChannel` that runs user code, also for framework pipelines."""
from __future__ import annotations

import ast
import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, model_validator

from ragbed.documents.errors import CallError, RagbedError, SettingsError
from ragbed.documents.http import Response
from ragbed.documents.user_code import UserCode
from ragbed.experiments.guests.pipelines.pipeline import FIELDS, Channel, JSONPipeline
from ragbed.strategies.settings.plugins import parse_file_kind
from ragbed.strategies.settings.source import execute_file, hash_file, parse_file, resolve_file

if TYPE_CHECKING:
    from ragbed.agents.model_settings import CallLimits

Result = TypeVar("Result")


def _check_factory(factory: str) -> str:
    if parse_file_kind(factory) is None:
        raise ValueError(f"{factory!r} does not name a function in a file; write FILE.py:NAME")
    return factory


class FilePipeline(JSONPipeline):
    """A pipeline defined in a Python file. A run executes the file with all permissions of the user.

    Attributes:
        factory: `FILE.py:NAME`; FILE is relative to the current folder.
    """

    factory: Annotated[str, AfterValidator(_check_factory)]

    @property
    def sources(self) -> Sequence[str]:
        """Return the hash of the file."""
        return [hash_file(self._place[0])]

    def load(self) -> Any:
        """Execute the file and return its attribute NAME. Raises SettingsError if it has no such attribute, or
        fails."""
        file, name = self._place
        module, _ = execute_file(resolve_file(file), str(file))
        if (found := getattr(module, name, None)) is None:
            raise SettingsError(f"pipeline {self.name}: {file} does not define {name}")
        return found

    @property
    def _place(self) -> tuple[Path, str]:
        place = parse_file_kind(self.factory)
        assert place is not None  # `_check_factory` rejects others
        return place


class Python(FilePipeline):
    """A function, plain or async. Its parameters are any of `question`, `options`, `history`, `documents` and `id`, or
    the keys of `request`. It returns an answer, or an object that contains one."""

    kind: Literal["python"] = "python"

    @model_validator(mode="before")
    @classmethod
    def _request_from_parameters(cls, fields: Any) -> Any:
        place = parse_file_kind(str(fields.get("factory", ""))) if isinstance(fields, dict) else None
        if place is None or "request" in fields:
            return fields
        file, function = place
        try:
            names = _parameters(resolve_file(file), str(file), function)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        request = {name: f"{{{name}}}" for name in FIELDS if name in names}
        if names and not request:
            raise ValueError(f"{function} has parameters that ragbed cannot fill: {', '.join(names)}; rename them to "
                             f"some of {', '.join(FIELDS)}, or map each one in `request`")
        return {**fields, "request": request} if request else fields

    def open(self, limits: CallLimits) -> CodeChannel:
        """Load the function. Raises SettingsError if it cannot be called."""
        function = self.load()
        if not callable(function):
            raise SettingsError(f"pipeline {self.name}: {self.factory} is not a function")
        return CodeChannel(self, call=lambda body: function(**body) if isinstance(body, dict) else function(body),
                           seconds=limits.seconds)


def _parameters(file: Path, named: str, function: str) -> list[str]:
    """Return the names of a function's parameters, none if there is no such function. The file is not executed."""
    return next(([one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                 for node in parse_file(file, named).body
                 if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function), [])


def sum_usage(*usages: Any) -> dict[str, int]:
    """Sum the tokens of several calls, under any framework's field names."""
    return {name: sum(next((count for count in (get_field(used, name), get_field(used, other)) if type(count) is int),
                           0) for used in usages)
            for name, other in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))}


def get_field(owner: Any, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object, or None."""
    return owner.get(name) if isinstance(owner, Mapping) else getattr(owner, name, None)


def _to_json(value: Any) -> Any:
    """Convert an object of pydantic, a dataclass, a NumPy number or a date."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    convert = getattr(value, "item", None) or getattr(value, "isoformat", None)
    if callable(convert):
        return convert()
    raise TypeError(f"a {type(value).__name__}")


class CodeLoop:
    """Runs async code on an event loop in a daemon thread. All pipelines of a process share it, because clients of
    frameworks are shared, and stay bound to their loop. If a call blocks it, that call fails, and the others are sent
    again to a new loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, Result]], name: str, patience: float) -> Result:
        """Run a coroutine function of the pipeline `name` to its end. If this is cancelled, so is the coroutine. Raises
        CallError if it blocks the loop for `patience` seconds, and ConnectionError if another call does."""
        loop = self._loop = self._loop or _start_loop(name)
        tasks: list[asyncio.Task[Any] | None] = []

        async def run() -> Result:
            tasks.append(asyncio.current_task())
            return await work()

        answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), loop))
        blocked = asyncio.create_task(_wait_until_blocked(loop, patience))
        try:
            waiting: list[asyncio.Future[Any]] = [answer, blocked]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            self._loop = None if self._loop is loop else self._loop
            if asyncio.current_task(loop) in tasks:
                raise CallError(f"{name}: its async code blocked the event loop for {patience:g} seconds; use await, "
                                "or a function without async", "pipeline")
            raise ConnectionError("another call blocked the event loop")
        finally:
            answer.cancel()
            blocked.cancel()


def _start_loop(name: str) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
    return loop


async def _wait_until_blocked(loop: asyncio.AbstractEventLoop, patience: float) -> None:
    here = asyncio.get_running_loop()
    while True:
        answered = here.create_future()
        loop.call_soon_threadsafe(_tell, here, answered)
        await asyncio.wait({answered}, timeout=patience)
        if not answered.done():
            return
        await asyncio.sleep(patience / 4)


def _tell(caller: asyncio.AbstractEventLoop, answered: asyncio.Future[None]) -> None:
    if not caller.is_closed():
        caller.call_soon_threadsafe(answered.cancel)


_CODE_LOOP = CodeLoop()


@dataclass(frozen=True)
class CodeChannel(Channel):
    """Calls a user's Python code, and converts what it returns, in threads of their own, so that code that blocks or
    raises affects its own question only. Code that ignores its deadline continues, and its result is discarded.

    Attributes:
        seconds: time limit of a call.
    """

    call: Callable[[Any], Any] = lambda body: None
    seconds: float = 600.0
    to_json: Callable[[Any], Any] = _to_json

    async def post(self, body: Any) -> Response:
        """Call the code once. An error that carries a retryable HTTP status becomes a response with that status. Raises
        CallError of kind `pipeline` for any other error."""
        try:
            content = await self._in_thread(lambda: self._call(body))
            if not isinstance(content, bytes):
                content = await _CODE_LOOP.run(lambda: self._await(content), self.settings.name, self.seconds / 4)
            return Response(200, {}, content)
        except CallError as error:
            cause: CallError = error
            if (status := await self._in_thread(lambda: _find_status(cause))) == 429 or 500 <= status < 600:
                return Response(status, {}, json.dumps({"error": {"message": str(error)}}).encode())
            raise

    def _call(self, body: Any) -> Any:
        """Return the result of the code as JSON, or what to await for it."""
        content = self.call(body)
        return content if inspect.isawaitable(content) else self._dump(content)

    async def _await(self, content: Any) -> bytes:
        try:
            with self._user_code:
                return self._dump(await content)
        except KeyboardInterrupt as error:  # it would end the event loop
            raise CallError(f"{self.settings.name}: {type(error).__name__}", "pipeline") from None

    def _dump(self, content: Any) -> bytes:
        try:
            return json.dumps(content, default=self.to_json, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise CallError(f"{self.settings.name}: it returned a value that cannot be written as JSON: {error}",
                            "pipeline") from None

    @property
    def _user_code(self) -> UserCode:
        return UserCode(lambda why: CallError(f"{self.settings.name}: {why}", "pipeline"))

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        """Run user code in a daemon thread. Unlike an executor's thread, it does not keep the process from ending."""
        future: Future[Result] = Future()

        def run() -> None:
            try:
                with self._user_code:
                    result = work()
            except RagbedError as error:
                future.set_exception(error)
            except KeyboardInterrupt as error:  # only the code itself can raise it here
                future.set_exception(CallError(f"{self.settings.name}: {type(error).__name__}", "pipeline"))
            else:
                future.set_result(result)

        future.set_running_or_notify_cancel()  # avoids an error in the thread after the caller stopped waiting
        threading.Thread(target=run, name=self.settings.name, daemon=True).start()
        return await asyncio.wrap_future(future)


def _find_status(error: BaseException | None) -> int:
    """Return the HTTP status of a server in an error or its causes, or 0."""
    while error is not None:
        if type(status := getattr(error, "status_code", None)) is int:
            return status
        error = error.__cause__
    return 0
