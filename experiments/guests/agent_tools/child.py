"""The process that runs a user's function, SQL of a model, or the client of an MCP server. Unlike a thread, it can be
stopped.

`processes` starts it. It reads one JSON object per line from stdin, first its job, then the requests, and answers each
with one line on stdout. What the code prints goes to stderr.
"""
from __future__ import annotations

import asyncio
import inspect
import json
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ragbed.documents.child_process import Requests, limit_memory
from ragbed.documents.errors import RagbedError
from ragbed.documents.user_code import UserCode
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure, describe_tool, read_arguments

_MAX_MEMORY = 2 * 1024**3  # bytes; DuckDB's own limit does not count all that a query allocates
_MAX_ROWS, _MAX_CELL, _MAX_RESULT = 50, 200, 200_000  # rows; characters

Json = Mapping[str, Any]


def main() -> None:
    """Answer the job, then requests until stdin ends."""
    requests = Requests(signal.SIGTERM)
    read, say = requests.read, requests.answer
    job = read()
    try:
        if job["job"] == "mcp":
            from ragbed.experiments.guests.agent_tools.mcp_child import serve

            limit_memory(_MAX_MEMORY)
            serve(job, read, say)
            return
        handle, answer = (_load_function if job["job"] == "function" else _open_database)(job)
        say(answer)
    except RagbedError as error:
        say({"failure": str(error), "ends": True})
        return
    while request := read():
        try:
            answer = handle(request)
        except RagbedError as error:
            answer = {"failure": str(error)}
        except (MemoryError, RecursionError) as error:
            answer = {"failure": f"it failed: {type(error).__name__}"}
        say(answer)


def _load_function(job: Json) -> tuple[Callable[[Any], Json], Json]:
    """Load a user's function. The first answer describes it."""
    from ragbed.strategies.settings.source import execute_file

    module, content = execute_file(Path(job["file"]), job["named"])
    function = getattr(module, job["function"], None)
    if not inspect.isfunction(function):
        raise ToolFailure(f"{job['named']}: there is no function {job['function']!r}")
    with UserCode(lambda why: ToolFailure(f"{job['named']}: {job['function']} cannot be a tool: {why}")):
        spec, model = describe_tool(function, job["function"])

    def handle(request: Json) -> Json:
        arguments = read_arguments(model, request["arguments"])
        with UserCode(lambda why: ToolFailure(f"it failed: {why}")):
            value = function(**arguments)
            value = asyncio.run(value) if inspect.iscoroutine(value) else value
        return {"value": _to_json(value)}

    return handle, {"description": spec.description, "parameters": spec.parameters, "hash": content}


def _to_json(value: Any) -> Any:
    """Return a result as JSON. Raises ToolFailure if it cannot be written so, or is too large."""
    from pydantic_core import PydanticSerializationError, to_json

    try:
        written = to_json(value, fallback=None, inf_nan_mode="strings")
    except (PydanticSerializationError, ValueError) as error:
        raise ToolFailure(f"it returned {type(value).__name__!r}, which is neither text nor JSON: {str(error)[:200]}"
                          ) from None
    if len(written) > _MAX_RESULT:
        raise ToolFailure(f"it returned {len(written):,} bytes; at most {_MAX_RESULT:,} can be shown")
    return json.loads(written)


def _open_database(job: Json) -> tuple[Callable[[Any], Json], Json]:
    """Load tables into a database in memory, which can reach nothing else."""
    import duckdb

    limit_memory(_MAX_MEMORY)
    database = duckdb.connect(":memory:", config={
        "enable_external_access": False, "autoload_known_extensions": False, "autoinstall_known_extensions": False,
        "allow_community_extensions": False, "python_enable_replacements": False, "threads": 1,
        "memory_limit": "256MB", "temp_directory": ""})
    for table in job["tables"]:
        columns = ", ".join(f"{_quote(name)} {kind}" for name, kind, _ in table["columns"])
        marks = ", ".join("unnest(?)" for _ in table["columns"])
        database.execute(f"CREATE TABLE {_quote(table['name'])} ({columns})")
        database.execute(f"INSERT INTO {_quote(table['name'])} SELECT {marks}",
                         [values for *_, values in table["columns"]])
    database.execute("SET lock_configuration = true")

    def handle(request: Json) -> Json:
        try:
            return _select(database, request["query"])
        except duckdb.Error as error:
            why = re.split(r"\n\nLINE|\nPossible solutions", str(error))[0]
            raise ToolFailure(" ".join(why.split())[:300]) from None

    return handle, {}


def _select(database: Any, query: str) -> Json:
    """Return the first rows of one query, and undo what it changed."""
    statements = database.extract_statements(query)
    if len(statements) != 1 or statements[0].type.name not in ("SELECT", "EXPLAIN"):
        raise ToolFailure("write one query, such as SELECT ... FROM ...; the tables cannot be changed")
    database.execute("BEGIN")
    try:
        tables = sorted(database.get_table_names(query))
        found = database.execute(statements[0])
        rows = found.fetchmany(_MAX_ROWS + 1)
        columns = [one[0] for one in found.description]
    finally:
        database.execute("ROLLBACK")
    shown = [["" if cell is None else str(cell)[:_MAX_CELL] for cell in row[:_MAX_ROWS]] for row in rows[:_MAX_ROWS]]
    return {"columns": [name[:_MAX_CELL] for name in columns[:_MAX_ROWS]], "rows": shown, "tables": tables,
            "more": len(rows) > _MAX_ROWS or len(columns) > _MAX_ROWS}


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main()
