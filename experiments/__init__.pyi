from .api import Run, open_run, run
from .benchmarks import BENCHMARKS
from .cells import Cell
from .metrics import METRICS, Scored, Sub, aggregate, metric_named, score
from .question import (
    ANSWERS,
    RANKED,
    SPANS,
    Attack,
    Benchmark,
    Bucket,
    FoundBy,
    Goal,
    Gold,
    Mined,
    Question,
    Rubric,
    Scheme,
    Step,
    distinct,
)
from .record import (
    UNITS,
    Grade,
    Record,
    Result,
    Stored,
    StoredMessage,
    StoredPassage,
    StoredProbe,
    StoredStep,
    StoredSub,
    Timing,
    Unit,
    Verdict,
    used,
)
from .report import ReportInput, write_report
from .running.plan import Plan
from .runs.store import RunFolder
from .settings import RunSettings
from .settings.file import check_settings, read_settings

__distribution__: str

__all__ = [
    "ANSWERS",
    "BENCHMARKS",
    "METRICS",
    "RANKED",
    "SPANS",
    "UNITS",
    "Attack",
    "Benchmark",
    "Bucket",
    "Cell",
    "FoundBy",
    "Goal",
    "Gold",
    "Grade",
    "Mined",
    "Plan",
    "Question",
    "Record",
    "ReportInput",
    "Result",
    "Rubric",
    "Run",
    "RunFolder",
    "RunSettings",
    "Scheme",
    "Scored",
    "Step",
    "Stored",
    "StoredMessage",
    "StoredPassage",
    "StoredProbe",
    "StoredStep",
    "StoredSub",
    "Sub",
    "Timing",
    "Unit",
    "Verdict",
    "aggregate",
    "check_settings",
    "distinct",
    "metric_named",
    "open_run",
    "read_settings",
    "run",
    "score",
    "used",
    "write_report",
]
