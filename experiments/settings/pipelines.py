"""The interface between a user's pipeline and a run. Guests add kinds of pipelines, such as HTTP servers."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ragbed.agents.model_settings import PIPELINE_PREFIX
from ragbed.experiments.cells import OWN, PIPELINE
from ragbed.guests import load_kinds
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.strategies.types import Reasoning, Rules, Tools

if TYPE_CHECKING:
    from ragbed.agents.client import ModelClient
    from ragbed.agents.model_settings import ModelSettings
    from ragbed.documents.types import Chunk, Document
    from ragbed.experiments.question import Question
    from ragbed.experiments.record import Level
    from ragbed.strategies.types import Evidence

_MAX_NAME = 80  # characters


def _check_name(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > _MAX_NAME:
        raise ValueError(f"expected one line of at most {_MAX_NAME} printable characters")
    return name


class PipelineSettings(BaseModel):
    """Settings of one pipeline, which replaces the model and the strategy of its cells.

    A subclass is one kind of pipeline: it has a field `kind` with a single literal value, and overrides `identity`,
    `takes_documents`, `recipe` and `open_client`. A guest registers it in the slot `pipeline`.

    Attributes:
        name: label in tables.
        rules: rules that say whether the pipeline may refuse and cite, which affects scoring. By default the run's
            first rules.
        concurrency: largest number of questions in progress. By default the run's `concurrency`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    recorded: ClassVar[bool] = False  # True if the answers already exist, so the questions cannot change

    name: Annotated[str, AfterValidator(_check_name)]
    rules: Rules | None = None
    concurrency: int | None = Field(default=None, ge=1, le=1024)

    @property
    def cell_model(self) -> str:
        """Return the name that cells show in place of a model's name."""
        return PIPELINE_PREFIX + self.name

    @property
    def takes_documents(self) -> bool:
        """Return whether ragbed sends the documents to the pipeline. If not, the pipeline retrieves by itself."""
        raise NotImplementedError

    @property
    def called_tools(self) -> Tools:
        """Return the tools that the pipeline may call."""
        return Tools()

    @property
    def identity(self) -> str:
        """Return the journal's key for the pipeline: its name and every setting that affects its answers, but no host.
        Raises SettingsError if one of its files cannot be read."""
        raise NotImplementedError

    @property
    def recipe(self) -> Reasoning:
        """Return the reasoning strategy that asks the pipeline."""
        raise NotImplementedError

    def open_client(self, calls: ModelSettings, known: str | None = None) -> AbstractAsyncContextManager[ModelClient]:
        """Open a client that asks the pipeline. Raises UserError if it cannot be opened.

        Args:
            calls: retries and time limits of calls.
            known: the recorded identity if this is a replay, which makes no calls and does not read the pipeline's
                files.
        """
        raise NotImplementedError

    def match_contexts(self, evidence: Evidence, question: Question, documents: Mapping[str, Document],
                       gold: Sequence[Chunk]) -> tuple[Evidence, Mapping[int, Level | None]]:
        """Match the contexts that the pipeline used with the run's documents, to find gold in them.

        Args:
            documents: the benchmark's documents, by id and by source path.
            gold: gold chunks that are not among the question's own chunks.

        Returns:
            the evidence, and the gold levels of passages for which they are already known (None: not gold).
        """
        return evidence, {}

    def check(self, questions: Mapping[str, str], repeats: int) -> str | None:
        """Check that the pipeline fits a run. Return a note for the run, or None. Raises UserError if it does not fit.

        Args:
            questions: text of each question by id.
            repeats: how often each question is asked.
        """
        return None


def pipeline_union() -> Any:
    """Return the type of pipeline settings: the union of the kinds that guests add."""
    return tagged_union(load_kinds("pipeline", PipelineSettings).values())


def check_pipelines(pipelines: Sequence[PipelineSettings], models: Sequence[str], only_searches: bool,
                    sub_answers: str) -> None:
    """Raise ValueError if the run has neither a model nor a pipeline, if two pipelines have the same name, or if the
    run needs something that a pipeline cannot do."""
    if not models and not pipelines:
        raise ValueError("models: the list is empty; name at least one model, or omit the key")
    twice = next((name for name, count in Counter(one.name for one in pipelines).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"pipelines: two have the name {twice}; give each a different `name`")
    if pipelines and (only_searches or sub_answers == "in_prompt"):
        raise ValueError("pipelines: a pipeline answers one question per call; remove "
                         f"{'reasoning: search_only' if only_searches else 'sub_answers: in_prompt'}")


def pipeline_lists(one: PipelineSettings, base: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Return the values of each factor for a pipeline's cells. Factors without effect on the pipeline have only one
    value, such as the retriever of a pipeline that retrieves by itself."""
    own: dict[str, Sequence[Any]] = {"model": [one.cell_model], "reasoning": [PIPELINE],
                                     "rules": [one.rules] if one.rules else base["rules"][:1],
                                     "show": ["question"], "retrieval": ["once"]}
    alone = ["framing", "headers", "history", "answer_format", "prompt_variant", "language", "prompts"]
    if not one.takes_documents:
        own |= {"condition": ["retrieved"], "perturbation": ["none"], "retrieval": [OWN]}
        alone += ["retriever", "format", "chunker", "embedder", "seed"]
    if one.recorded:
        own["variation"] = ["as_asked"]
    return {**base, **{name: base[name][:1] for name in alone}, **own}
