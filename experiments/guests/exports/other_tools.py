"""Write a run's results for other tools: Every Eval Ever, Langfuse, and the data sets of Hugging Face."""
from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any
from uuid import UUID

from ragbed.documents.errors import RunError
from ragbed.experiments.cells import FACTORS, short_name
from ragbed.experiments.formatting import metric_title
from ragbed.experiments.guests.exports.record_tables import ExportedRun, write_parquet
from ragbed.experiments.guests.exports.tables import to_latex, to_markdown
from ragbed.experiments.metrics import METRICS, better_sign, family_of
from ragbed.experiments.metrics.scoring import is_share
from ragbed.experiments.record import Record
from ragbed.experiments.runs.finished import Finished
from ragbed.retrieval.storage.files import explain_write_error, write_atomically

_SCHEMA = "0.3.0"  # the version of Every Eval Ever's schema


def _plain(text: str) -> str:
    """Replace what UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "unknown"


def _model_id(model: str) -> str:
    """Return a model as `developer/name`, without addresses and folders."""
    provider, _, name = model.partition(":")
    if "#" not in model and name and provider in ("openai", "anthropic", "mistral", "deepseek", "xai"):
        return f"{provider}/{name}"
    short = short_name(model).removeprefix("hf:")
    return short if short.count("/") == 1 else f"unknown/{short.rpartition('/')[2]}"


def _write_eval_ever(run: Finished, folder: Path) -> None:
    """Write a JSON file with the figures of each cell, and a JSON Lines file with its answers, in the places that the
    data store of Every Eval Ever has for them."""
    records: dict[str, list[Record]] = {}
    for record in run.folder.records():
        records.setdefault(record.result.cell, []).append(record)
    for row in run.rows:
        own = records.get(row["id"], [])
        model, id = short_name(row["model"] or "none"), _model_id(row["model"] or "none")
        uuid = str(UUID(bytes=hashlib.sha256(f"{run.summary['results']}{row['id']}".encode()).digest()[:16], version=4))
        place = Path("data", _slug(run.name), _slug(id.partition("/")[0]), _slug(id.partition("/")[2]))
        made = str(int(max((datetime.fromisoformat(one.timing.finished).timestamp() for one in own), default=0)))
        evaluation = f"{run.name}/{id}/{row['id']}"
        lines = [json.dumps(one, ensure_ascii=False) for one in _instances(run, own, evaluation, id)]
        samples = _plain("".join(f"{line}\n" for line in lines)).encode()
        content = {
            "schema_version": _SCHEMA, "evaluation_id": evaluation, "evaluation_timestamp": made,
            "retrieved_timestamp": made,
            "source_metadata": {"source_name": run.name, "source_type": "evaluation_run",
                                "source_organization_name": "unknown", "evaluator_relationship": "other"},
            "eval_library": {"name": "ragbed", "version": version("ragbed")},
            "model_info": {"name": model, "id": id, "additional_details": {
                "deployment_type": "unknown", "model_availability": "unknown", **{
                    name: str(row[name]) for name in FACTORS if row.get(name) is not None and name != "model"}}},
            "evaluation_results": [_figure(run, row, metric, found) for metric, found in row["metrics"].items()
                                   if found["mean"] is not None],
            "detailed_evaluation_results": {
                "format": "jsonl", "file_path": f"{place.as_posix()}/{uuid}_samples.jsonl", "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(samples).hexdigest(), "total_rows": len(lines)}}
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / f"{uuid}_samples.jsonl").write_bytes(samples)
        (folder / place / f"{uuid}.json").write_text(_plain(json.dumps(content, indent=2, ensure_ascii=False)), "utf-8")


def _figure(run: Finished, row: Mapping[str, Any], metric: str, found: Mapping[str, Any]) -> dict[str, Any]:
    known = METRICS.get(family_of(metric))
    bounded = known is not None and known.low is not None and known.high is not None
    return {"evaluation_result_id": f"{row['id']}:{metric}", "evaluation_name": f"{run.name} {metric}",
            "source_data": {"dataset_name": str(run.made.benchmark["name"]), "source_type": "other",
                            "source_version": str(run.made.benchmark["hash"])},
            "metric_config": {"evaluation_description": known.description if known else metric_title(metric),
                              "metric_id": f"ragbed.{metric}", "metric_name": metric_title(metric),
                              "lower_is_better": better_sign(metric) < 0,
                              **({"score_type": "continuous", "min_score": known.low, "max_score": known.high}
                                 if known is not None and bounded else {})},
            "score_details": {"score": found["mean"], "uncertainty": {"num_samples": found["n"], **(
                {} if found["low"] is None or found["high"] is None else {"confidence_interval": {
                    "lower": found["low"], "upper": found["high"], "confidence_level": 0.95}})}}}


def _instances(run: Finished, records: Sequence[Record], evaluation: str, model: str) -> Iterator[dict[str, Any]]:
    """Yield a line for each answer and each metric of the table that it has."""
    right = run.scheme.correctness_metrics or run.scheme.metrics[:1]
    for record in records:
        result, question = record.result, run.questions[record.result.question]
        correct = next((result.scores[name] for name in right if result.scores.get(name) is not None), None) == 1
        for metric in run.scheme.metrics:
            if (score := result.scores.get(metric)) is None:
                continue
            yield {
                "schema_version": _SCHEMA, "evaluation_id": evaluation, "model_id": model,
                "evaluation_name": f"{run.name} {metric}", "evaluation_result_id": f"{result.cell}:{metric}",
                "sample_id": question.id, "interaction_type": "single_turn",
                "sample_hash": hashlib.sha256("".join((question.text, *question.answers)).encode(
                    "utf-8", "replace")).hexdigest(),
                "input": {"raw": question.text, "reference": list(question.answers),
                          "choices": [text for _, text in question.options] or None},
                "output": {"raw": [result.text]}, "messages": None, "answer_attribution": [{
                    "turn_idx": 0, "source": "output.raw", "extracted_value": result.text,
                    "extraction_method": "ragbed", "is_terminal": True}],
                "evaluation": {"score": score, "is_correct": correct},
                "token_usage": {"input_tokens": result.usage.prompt_tokens,
                                "output_tokens": result.usage.completion_tokens, "total_tokens": result.usage.tokens},
                "performance": {"latency_ms": record.timing.seconds * 1000},
                "error": f"{result.failure.kind}: {result.failure.message}" if result.failure else None,
                "metadata": {"outcome": result.outcome, "cell": run.labels[result.cell]}}


def _langfuse(run: Finished) -> str:
    """Return the bodies of requests to Langfuse's public API as JSON: a data set, its items, traces, and scores."""
    def trace_id(*parts: str) -> str:
        return hashlib.sha256("\0".join((str(run.summary["results"]), *parts)).encode()).hexdigest()[:32]

    traces, scores = [], []
    for record in run.folder.records():
        result = record.result
        id = trace_id(result.cell, result.question)
        traces.append({"id": id, "name": run.labels[result.cell], "timestamp": record.timing.finished,
                       "input": run.questions[result.question].text, "output": result.text, "metadata": {
                           "run": run.name, "cell": run.labels[result.cell], "question": result.question,
                           "outcome": result.outcome}})
        scores += [{"id": trace_id(id, name), "traceId": id, "name": name, "value": score,
                    "dataType": "BOOLEAN" if is_share(name) and score in (0, 1) else "NUMERIC"}
                   for name, score in result.scores.items() if score is not None]
    items = [{"datasetName": run.name, "id": f"{run.name}:{one.id}", "input": {"question": one.text, **(
        {"options": dict(one.options)} if one.options else {})}, "expectedOutput": list(one.answers), "metadata": {
            name: list(values) for name, values in one.tags.items()}} for one in run.questions.values()]
    return json.dumps({"dataset": {"name": run.name, "description": f"Questions of the ragbed run {run.name}"},
                       "items": items, "traces": traces, "scores": scores}, indent=1, ensure_ascii=False) + "\n"


_CARD = """---
pretty_name: {title}
tags:
- ragbed
- evaluation
configs:
- config_name: default
  data_files:
  - split: test
    path: data/test-*.parquet
---

# {name}

Every answer of an experiment with [ragbed](https://pypi.org/project/ragbed/), one row for each question in each cell.
Columns: the cell's factors, the question and its gold, the answer, its outcome and cause, scores (`score.NAME`), tokens
and price.

{table}
"""


def _write_data_set(run: Finished, folder: Path) -> None:
    """Write the records as Parquet with a data set card."""
    (folder / "data").mkdir()
    write_parquet(ExportedRun.of(run), folder / "data" / "test-00000-of-00001.parquet")
    card = _CARD.format(title=json.dumps(f"Answers of {run.name}"), name=run.name, table=to_markdown(run))
    (folder / "README.md").write_text(_plain(card), "utf-8")


_TEXTS: Mapping[str, Callable[[Finished], str]] = MappingProxyType({
    "langfuse": _langfuse, "latex": to_latex, "markdown": to_markdown})
_FOLDERS: Mapping[str, Callable[[Finished, Path], None]] = MappingProxyType({
    "every_eval_ever": _write_eval_ever, "hf_dataset": _write_data_set})
FORMATS = (*_TEXTS, *_FOLDERS)


def export_results(run: Finished, path: Path, form: str) -> str:
    """Write a run's results in one of `FORMATS` to a new file or folder. Return a line that says what was written.
    Raises RunError if the path exists or cannot be written."""
    if path.exists():
        raise RunError(f"{path} exists; name another {'folder' if form in _FOLDERS else 'file'}")
    try:
        if form in _TEXTS:
            write_atomically(path, _plain(_TEXTS[form](run)).encode())
        else:
            with new_folder(path) as folder:
                _FOLDERS[form](run, folder)
    except OSError as error:
        raise RunError(f"{path}: {explain_write_error(error)}") from error
    return f"{path}: {len(run.rows)} cells, {len(run.folder.done()):,} answers"


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder that gets its name once it is complete."""
    folder = Path(mkdtemp(prefix=f".{path.name}", dir=path.parent))
    try:
        yield folder
        folder.chmod(0o755)
        folder.rename(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
