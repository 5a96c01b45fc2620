"""agent: how calls written in text are read."""
import pytest
from agent_scene import OPEN, SEARCH
from each_case import each
from growth import grows_linearly

from ragbed.experiments.guests.agent.reading import read_lines
from ragbed.strategies import ToolSpec

LIST = ToolSpec("list", "List documents.", {"type": "object", "properties": {"path": {"type": "string"}}})
TOOLS = [SEARCH, OPEN, LIST]


def read(text):
    return [(call.tool, call.arguments) for call in read_lines(text, TOOLS).calls]


@each(("text", "called"), [
    ("Thought: x\nsearch: Ada Lovelace", [("search", {"query": "Ada Lovelace"})]),
    ('search: {"query": "Ada", "k": 3}', [("search", {"query": "Ada", "k": 3})]),
    ('search: {\n  "query": "Ada"\n}\nResult: x', [("search", {"query": "Ada"})]),
    ('search: {"query": "Ada", "k": ', [("search", {"query": "Ada"})]),
    ('Action: open(document="My file", page=2)', [("open", {"document": "My file", "page": 2})]),
    ('Thought: x\nThen search: {"query": "Ada"', [("search", {"query": "Ada"})]),
    ("open[My file]", [("open", {"document": "My file"})]),
    ("**Open:** `My file`", [("open", {"document": "My file"})]),
    ("open: document: My file, page: 2", [("open", {"document": "My file", "page": 2})]),
    ("search: Ada\nopen: file\n\nsearch: never", [("search", {"query": "Ada"}), ("open", {"document": "file"})]),
    ("search: Ada\nfinish", [("search", {"query": "Ada"})]),
    ("list", [("list", {})]), ("list: docs", [("list", {"path": "docs"})]),
    (r'search: {"query": "\d+ \w"}', [("search", {"query": r"\d+ \w"})]),
    ("open", [("open", None)]), ("search: {}", [("search", {})]), ("list: {}", [("list", {})]),
    ('<tool_call>{"name": "search", "arguments": {"query": "Ada"}}</tool_call>', [("search", {"query": "Ada"})]),
    ("<think>search: no</think>\nsearch: yes", [("search", {"query": "yes"})]),
    ("I search: no", [("", None)]), ("", [("", None)]), ("Thought: x\nFinish", []), ("Call: finish", [])])
def test_calls_are_read_from_lines(text, called):
    assert read(text) == called


@pytest.mark.parametrize(("text", "kept"), [
    ("Thought: x\nsearch: Ada\nResult: made up\nfinish", "Thought: x\nsearch: Ada\n"),
    ('search: {"query": "Ada"} and so on\nResult: made up', 'search: {"query": "Ada"} and so on\n'),
    ("Thought: known\nfinish\nAnswer: Ohio", "Thought: known\nfinish\n")])
def test_what_a_model_makes_up_after_its_calls_does_not_stay(text, kept):
    assert read_lines(text, TOOLS).kept == kept


@each("piece", ["search: ", "search: {", 'search: {"query": ', '{"name": "search"', "open: page=",
                "*", "action: ", "\n> ", "finish ", 'search: {"query": "\\'])
def test_a_monstrous_reply_takes_no_time(piece):
    grows_linearly(lambda n: read_lines(piece * n, TOOLS), 20_000)
