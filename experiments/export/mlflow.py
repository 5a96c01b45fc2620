"""A run in MLflow's tracking: one MLflow run for it, and one below it for each cell."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragbed.documents.errors import MissingExtra, RunError, SettingsError
from ragbed.experiments.cells import FACTORS
from ragbed.experiments.runs.finished import Finished

if TYPE_CHECKING:
    from mlflow import MlflowClient

_VARIABLE = "MLFLOW_TRACKING_URI"
_RESULTS = "ragbed.results"
_UNNAMED = re.compile(r"[^\w\-. :/]")  # what a metric's name in MLflow may not hold
_USER = re.compile(r"(?<=://)[^\s/]*@")  # and password, of a URI; a slash in either is escaped
_ARTIFACTS = ("config.yaml", "manifest.json", "summary.json", "report.html")


def log_to_mlflow(run: Finished, uri: str) -> str:
    """Log the run and return where it went, in words. One that is there with the same results is not logged again.

    The experiment has the run's name. Means are metrics, their intervals `NAME.low` and `NAME.high`; factors are
    parameters; the run's files but its records are artifacts.

    Args:
        uri: of the tracking server, folder or database; empty for that of the variable MLFLOW_TRACKING_URI.

    Raises:
        MissingExtra: MLflow is not installed.
        SettingsError: no place is named.
        RunError: MLflow refuses, or cannot write there as it is installed.
    """
    MissingExtra.check("mlflow", "mlflow")
    uri = uri or os.environ.get(_VARIABLE, "")
    if not uri:
        raise SettingsError(f"mlflow of where? give mlflow:URI, or set {_VARIABLE}")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # its seven take minutes where nobody listens
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow refuses folders without; it still writes them
    from mlflow.exceptions import MlflowException
    from mlflow.store.db.db_types import DATABASE_ENGINES

    place = _USER.sub("", uri)
    # The extra is mlflow-skinny, which keeps nothing in databases, and blames something else.
    if urlsplit(uri).scheme.partition("+")[0] in DATABASE_ENGINES and find_spec("sqlalchemy") is None:
        raise RunError(f"MLflow at {place}: a database needs the whole of MLflow; pip install mlflow, or give a "
                       "folder or a server")
    try:
        from mlflow import MlflowClient

        return _log(MlflowClient(tracking_uri=uri), run)
    except (MlflowException, OSError, ImportError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise RunError(f"MLflow at {place}: {_USER.sub('', first)[:300]}") from error


def _log(client: MlflowClient, run: Finished) -> str:
    results = run.summary["results"]
    known = client.get_experiment_by_name(run.name)
    experiment = known.experiment_id if known else client.create_experiment(run.name)
    there = client.search_runs([experiment], filter_string=f"tags.`{_RESULTS}` = '{results}'")
    if there:
        return f"experiment {run.name} has these results already, as run {there[0].info.run_id}"
    parent = client.create_run(experiment, run_name=run.name).info.run_id
    for name in _ARTIFACTS:
        if (path := run.path / name).is_file():
            client.log_artifact(parent, str(path))
    for row in run.rows:
        _log_cell(client, experiment, parent, row, run.labels[row["id"]])
    client.set_tag(parent, _RESULTS, results)  # last: a run that was cut off is not taken for whole
    client.set_terminated(parent)
    return f"experiment {run.name}, run {parent}, with {len(run.rows)} runs below it"


def _log_cell(client: MlflowClient, experiment: str, parent: str, row: Mapping[str, Any], label: str) -> None:
    from mlflow.entities import Metric, Param

    made = client.create_run(experiment, run_name=label, tags={"mlflow.parentRunId": parent, "ragbed.cell": row["id"]})
    at = made.info.start_time
    wanted = [*FACTORS, "layout", "scoring", "judge", "exemplars"]
    client.log_batch(made.info.run_id,
                     metrics=[Metric(name, value, at, 0) for name, value in _figures(row).items()],
                     params=[Param(name, str(row[name])) for name in wanted if row.get(name) is not None])
    client.set_terminated(made.info.run_id)


def _figures(row: Mapping[str, Any]) -> dict[str, float]:
    figures: dict[str, float] = {"n": float(row["n"])}
    for name, one in row["metrics"].items():
        shown = _UNNAMED.sub("_at_" if "@" in name else "_", name)
        ends = {"": one["mean"], ".low": one["low"], ".high": one["high"], ".n": one["n"]}
        figures |= {shown + end: float(value) for end, value in ends.items() if value is not None}
    figures |= {f"outcome.{name}": float(count) for name, count in row["outcomes"].items()}
    return figures | {f"usage.{name}": float(value) for name, value in row["usage"].items() if value is not None}
