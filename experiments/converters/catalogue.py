"""The converters by name, and converting as `ragbed convert` is told to."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from documents.errors import SettingsError
from experiments.benchmarks import BENCHMARKS
from experiments.converters import crest, detectiveqa, mrceval, mrke
from experiments.converters.conversion import Converter, Draw, Sources, write_records

CONVERTERS: Mapping[str, Converter] = {
    "crest": crest.CONVERTER, "mrceval": mrceval.CONVERTER, "detectiveqa": detectiveqa.CONVERTER,
    "mrke": mrke.CONVERTER}


def convert(target: str, sources: Sequence[str], draw: Draw, out: Path) -> tuple[list[Path], int]:
    """Write records in the format of a benchmark into a new folder, and load them as that benchmark.

    Args:
        sources: texts `NAME=PATH`; a name may come again.

    Returns:
        the files, the last of them the one that says what they are made of; and how many questions they hold.

    Raises:
        SettingsError: there is no converter to the target, a source is not known, or the folder is not empty.
        BenchmarkError: a source cannot be read, or does not fit.
    """
    if target not in CONVERTERS:
        raise SettingsError(f"there is no converter to {target!r}; there are: {', '.join(CONVERTERS)}")
    files = write_records(target, CONVERTERS[target], _sources(sources), draw, out)
    return files, len(BENCHMARKS[target].model_validate({"path": str(out)}).load().questions)


def _sources(texts: Sequence[str]) -> Sources:
    sources: dict[str, list[Path]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise SettingsError(f"{text!r}: expected NAME=PATH")
        sources.setdefault(name, []).append(Path(path).expanduser())
    return sources
