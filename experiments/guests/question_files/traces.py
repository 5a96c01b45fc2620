"""Read questions and answers from traces (OpenTelemetry with OpenInference, Langfuse) and tests (promptfoo)."""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.documents.json import loads
from ragbed.documents.paths import expand_path
from ragbed.documents.rows import Row
from ragbed.experiments.answer_files import AnswerFormat, Prediction
from ragbed.experiments.guests.question_files.columns import Columns
from ragbed.experiments.guests.question_files.table_files import read_table

GIVEN = "given_answer"  # the answer that an application gave; it is not gold
_ASKED = ("question", "query", "user_input", "input", "prompt", "text", "content", "messages", "parts")
_SAID = ("answer", "output", "response", "result", "text", "content", "messages", "message", "choices", "parts")
_MESSAGE = r"(?:llm\.{0}_messages\.\d+\.message|gen_ai\.{1}\.\d+)\.content"
_INPUT, _OUTPUT = (re.compile(_MESSAGE.format(*names)) for names in (("input", "prompt"), ("output", "completion")))
_PASSAGE = re.compile(r"(retrieval\.documents\.\d+\.document\.)content")
_GOLD = re.compile(r"i?equals|i?contains(?:-any)?|similar|factuality|model-graded-factuality")  # assertions
_EXPECTED = re.compile(r"__expected\d*")


def read_foreign(rows: Sequence[Row]) -> list[Row] | None:
    """Return a record for each trace or test, with `question` and, if there are, the gold `expected`, `given_answer`,
    `retrieved`, `id`, `tags` and `run`; None if no known tool wrote the rows."""
    first = rows[0].fields
    if "resourceSpans" in first or ("attributes" in first and "context" in first):
        return list(_read_spans(rows))
    if isinstance(first.get("results"), dict):
        rows = rows[0].part("results", first["results"]).parts("results")
    elif isinstance(first.get("tests"), list):
        rows = rows[0].parts("tests")
    if rows and ("vars" in rows[0].fields or any(map(_EXPECTED.fullmatch, first))):
        return list(map(_read_test, rows))
    if "input" in first and {"observations", "sessionId", "htmlPath", "scores"} & first.keys():
        return list(map(_read_langfuse, rows))
    return None


def _read_spans(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a record for each trace of OpenTelemetry, from OTLP JSON or a list of spans."""
    traces: dict[str, list[tuple[bool, str, dict[str, Any]]]] = defaultdict(list)
    for row in rows:
        spans = [span for group in row.parts("resourceSpans") for scope in group.parts("scopeSpans")
                 for span in scope.parts("spans")] if "resourceSpans" in row.fields else [row]
        for span in spans:
            fields = span.fields
            context = fields["context"] if isinstance(fields.get("context"), dict) else fields
            traces[str(context.get("traceId") or context.get("trace_id"))].append((
                bool(fields.get("parentSpanId") or fields.get("parent_id")),
                str(fields.get("startTimeUnixNano") or fields.get("start_time")), _flatten(fields.get("attributes"))))
    for id, found in traces.items():
        attributes = [one for _, _, one in sorted(found, key=lambda one: one[:2])]  # the root is first
        question, answer = (next(filter(None, (_find(one, *side) for one in attributes)), "") for side in (
            ("input", _INPUT, _ASKED), ("output", _OUTPUT, _SAID)))
        if question:  # a trace may be of another kind, such as of an indexing job
            yield Row(rows[0].file, rows[0].line, {"id": id, "question": question, GIVEN: answer, "retrieved": [
                one for span in attributes for one in _find_passages(span)]})


def _flatten(attributes: Any) -> dict[str, Any]:
    """Return attributes as one level of dotted keys. OTLP writes them as a list of keys and typed values."""
    if isinstance(attributes, list) and all(isinstance(one, dict) and "key" in one for one in attributes):
        return {str(one["key"]): next(iter(one["value"].values()), None) if isinstance(one.get("value"), dict) else None
                for one in attributes}
    pairs = attributes.items() if isinstance(attributes, dict) else enumerate(attributes or ())
    return {key: value for name, inner in pairs for key, value in (
        {f"{name}.{below}": one for below, one in _flatten(inner).items()} if isinstance(inner, dict | list)
        else {str(name): inner}).items()}


def _find(attributes: Mapping[str, Any], side: str, message: re.Pattern[str], keys: Sequence[str]) -> str:
    """Return what a span was asked (`input`), or what it replied (`output`)."""
    stated = (attributes.get(key) for key in (f"{side}.value", f"gen_ai.{side}.messages", f"traceloop.entity.{side}"))
    messages = [value for key, value in attributes.items() if message.fullmatch(key)]
    return _text(next(filter(None, stated), messages[-1] if messages else ""), keys)


def _find_passages(attributes: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for key, value in attributes.items():
        if found := _PASSAGE.fullmatch(key):
            about = _parse(attributes.get(f"{found[1]}metadata"))
            source = about.get("source") or about.get("file_name") if isinstance(about, dict) else None
            yield {"text": str(value), "document": str(source or attributes.get(f"{found[1]}id") or "")}


def _parse(value: Any) -> Any:
    try:
        return loads(value, lenient=True) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    except ValueError:
        return value


def _text(value: Any, keys: Sequence[str]) -> str:
    """Return the text in a value, which may be JSON: one of these fields, or the last message, for a question that of
    the user."""
    value = _parse(value)
    if isinstance(value, list):
        users = [one for one in value if isinstance(one, dict) and one.get("role") in ("user", "human")]
        last = (users if users and keys is _ASKED else value)[-1:]
        return _text(last[0], keys) if last else ""
    if isinstance(value, dict):
        inner = [value[key] for key in keys if value.get(key)] or (list(value.values()) if len(value) == 1 else [])
        return _text(inner[0], keys) if inner else ""
    return "" if value is None else str(value).strip()


def _read_langfuse(row: Row) -> Row:
    fields = row.fields
    gold = _text(fields.get("expectedOutput"), _SAID)
    return Row(row.file, row.line, {
        "id": row.stated_id(), "question": _text(fields.get("input"), _ASKED),
        GIVEN: _text(fields.get("output"), _SAID), "tags": fields.get("tags") or [],
        **({"expected": gold} if gold else {})})


def _read_test(row: Row) -> Row:
    """Return a test of promptfoo, or a result of one. Assertions that quote the output are its gold."""
    def part(field: str, of: Mapping[str, Any] = row.fields) -> dict[str, Any]:
        return value if isinstance(value := of.get(field), dict) else {}

    case, provider = part("testCase") or row.fields, part("provider")
    given = dict(row.part("vars", row.fields["vars"]).fields) if "vars" in row.fields else {
        name: value for name, value in row.fields.items() if not name.startswith("__")}
    stated = case["assert"] if isinstance(case.get("assert"), list) else []
    asserts = [(str(one.get("type")), one.get("value")) for one in stated if isinstance(one, dict)]
    asserts += [(kind, value.strip()) for name, text in row.fields.items() if text and _EXPECTED.fullmatch(name)
                for kind, _, value in [re.sub(r"^(?![a-z-]+:)", "equals:", str(text)).partition(":")]]
    gold = [value for kind, value in asserts if value and _GOLD.fullmatch(kind)]
    if len(given) == 1:
        given = {"question": next(iter(given.values()))}
    return Row(row.file, row.line, {
        **given, **({"expected": gold[0]} if gold else {}), "tags": part("metadata", case),
        GIVEN: _text(part("response").get("output"), _SAID),
        "run": str(provider.get("label") or provider.get("id") or row.fields.get("provider") or "")})


def _read_records(file: Path) -> Iterator[tuple[Row, str]]:
    rows = list(read_table(expand_path(file)))
    records = read_foreign(rows) if rows else None
    if not records:
        raise SettingsError(f"{file}: holds no traces of OpenTelemetry or Langfuse, and no tests of promptfoo")
    columns = Columns.of(list(dict.fromkeys(name for row in records for name in row.fields)), {}, file.name)
    return ((row, "".join(columns.texts(row, "question"))) for row in records)


def read_answers(file: Path) -> Iterator[Prediction]:
    """Yield the answers in the file of another tool. Raises SettingsError if no known tool wrote it."""
    for row, question in _read_records(file):
        yield Prediction(f"{row.file}, line {row.line}", row.stated_id(), question, {
            "answer": row.fields.get(GIVEN) or None, "contexts": row.fields.get("retrieved", [])},
            str(row.fields.get("run") or ""))


def questions_from_traces(file: Path) -> list[dict[str, Any]]:
    """Return the questions in the file of another tool as lines of the benchmark `jsonl`. The application's answer
    becomes the tag `given`, for a review. Of equal questions, the last counts."""
    return list({question: {
        "question": question, **({"answer": gold} if (gold := row.fields.get("expected")) else {}),
        "tags": {"given": given} if (given := row.fields.get(GIVEN)) else {}}
        for row, question in _read_records(file) if question}.values())


TRACES = AnswerFormat(read_answers, None, several_runs=True)
