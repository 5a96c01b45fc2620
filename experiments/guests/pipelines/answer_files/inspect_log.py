"""Read the completion of each sample and epoch from Inspect's logs (inspect.aisi.org.uk), `.eval` or `.json`.

The sample's metadata may hold `contexts` (what the model read), `citations` and `refused`."""
from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ragbed.documents.errors import BenchmarkError, MissingExtra
from ragbed.experiments.answer_files import Answer, AnswerFormat, Prediction
from ragbed.experiments.guests.pipelines.answer_files.conversion import check_size

_METADATA = ("contexts", "citations", "refused")
_MAX_MESSAGE = 300  # maximum characters of an error message


def _read(file: Path) -> Iterator[Prediction]:
    try:
        from ijson import JSONError
        from inspect_ai.log import read_eval_log
        from zstandard import ZstdError
    except ImportError as error:
        raise MissingExtra("inspect-ai", "inspect") from error
    packed = file.suffix == ".eval"
    try:
        if packed:
            check_size(file, sum(one.file_size for one in zipfile.ZipFile(file).infolist()))
        log = read_eval_log(file.resolve(), resolve_attachments="core", format="eval" if packed else "json",
                            exclude_fields={"events", "messages", "store"})
    except (AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError, struct.error,
            zipfile.BadZipFile, JSONError, ZstdError) as error:  # exceptions that damaged logs have raised
        why = " ".join(str(error).split())[:_MAX_MESSAGE] or type(error).__name__
        raise BenchmarkError(f"{file}: not a readable Inspect log: {why}") from error
    for sample in log.samples or ():
        question = sample.input if isinstance(sample.input, str) else next(
            (one.text for one in reversed(sample.input) if one.role == "user"), "")
        content = {name: sample.metadata.get(name) for name in _METADATA}
        content["answer"] = sample.output.completion or None
        if (usage := sample.model_usage.get(log.eval.model) or sample.output.usage) is not None:
            content |= {"prompt_tokens": usage.input_tokens + (usage.input_tokens_cache_read or 0) + (
                usage.input_tokens_cache_write or 0), "completion_tokens": usage.output_tokens,
                "price": usage.total_cost}
        failure = " ".join(sample.error.message.split())[:_MAX_MESSAGE] if sample.error else ""
        yield Prediction(f"{file}, sample {sample.id}, epoch {sample.epoch}", str(sample.id), question, content, "",
                         sample.epoch - 1, failure)


def _write(answers: Iterator[Answer], path: Path) -> None:
    try:
        from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
        from inspect_ai.model import ModelOutput, ModelUsage
        from inspect_ai.scorer import Score
    except ImportError as error:
        raise MissingExtra("inspect-ai", "inspect") from error
    name, samples = "", []
    for one in answers:
        name, output = one["run"], ModelOutput.from_content(one["run"], one["answer"] or "")
        output.usage = ModelUsage(input_tokens=one["prompt_tokens"], output_tokens=one["completion_tokens"],
                                  total_cost=one["price"])
        samples.append(EvalSample(
            id=one["id"], epoch=1, input=one["question"], target=one["gold"], output=output,
            metadata={key: one[key] for key in _METADATA},
            scores={key: Score(value=value) for key, value in one["scores"].items() if value is not None},
            error={"message": one["failure"], "traceback": "", "traceback_ansi": ""} if "failure" in one else None))
    spec = EvalSpec(created="1970-01-01T00:00:00+00:00", task=name, model=name, config=EvalConfig(epochs=1),
                    dataset=EvalDataset(samples=len(samples), sample_ids=[sample.id for sample in samples]))
    # The path is a temporary one, "NAME.eval.SOMETHING", that replaces the file when it is complete.
    write_eval_log(EvalLog(status="success", eval=spec, samples=samples), str(path),
                   format="eval" if ".eval" in path.suffixes else "json")


INSPECT = AnswerFormat(_read, _write)
