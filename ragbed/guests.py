"""Guests: optional parts of ragbed that the core finds by name and never imports.

A guest may import the core. One `Guest` lists what it adds as "module:attribute" strings, which are imported on first
use:

    GUEST = Guest("word_count", {"metric": {"word_count": "word_count:METRICS"},
                                 "command": {"word-count": "word_count:show"}})

`BUILT_IN` lists ragbed's own guests. An installed distribution registers its guest by an entry point:

    [project.entry-points."ragbed.guests"]
    word_count = "word_count:GUEST"

A guest fills slots. In each slot, a name refers to an attribute of this type:

    command    a Typer function, such as `serve`; the name may have two words, as in "check strategy"
    opener     a function from a folder to the folder of a run; the name is a file in it, as in "traffic.sqlite"
    comparison a function from a folder and a baseline or None to JSON and views; named like an opener
    control    a context manager from a run's folder and a function for notes to a function that runs jobs (`RunJobs`
               of ragbed.experiments.running.hooks)
    estimate   a function from the settings of runs, and whether to print JSON, that prints their estimated cost; the
               name is "run"
    partial    a function from the open folder of an unfinished run to a summary of its answers so far, or None
    exporter   a function from a folder, an output and a format or None to a line of text; named like an opener
    table      a function from a finished run to rows, "records" for `Run.frame`, or to HTML, "html" for notebooks
    analysis   a function from `AnalysisInput` to a list of `View`, for the report, the terminal and JSON
    breakdown  like `analysis`, but only for benchmarks whose scheme lists the name in `views`
    finding    a function from `AnalysisInput` to JSON or None; analyses read the result as `run.found[NAME]`
    setting    a pydantic model, `Annotated[TYPE | None, Field(description=...)]`, or a function that returns the value
               or raises ValueError; the name is a settings key
    benchmark  a subclass of `Selection`; the name is its `kind`
    reasoning  a recipe, as in docs/strategies.md
    retrieval  a recipe that gathers evidence
    history    a recipe that rewrites a question
    prompts    a folder of `NAME.md`, which `template(NAME)` of ragbed.strategies finds
    retriever  a subclass of `RetrieverKind`; the name is its `kind`
    reranker   a subclass of `Reranker`; the name is its `kind`
    vectors    a settings class for the vectors of an index; the name is its `kind`
    pipeline   a subclass of `PipelineSettings`; the name is its `kind`
    answers    an `AnswerFormat`, which reads and writes another tool's answer files
    grade      a function from a text, a gold answer and a question to a `Grade`; the judge `lexical` uses its namesake,
               and `steps`, a function from reference steps and a reasoning to the indices of those that it contains
    judge      a subclass of `JudgeKind` (ragbed.experiments.judges.judge); the name is its `kind`
    labels     a function from a finished run and label files to a list of `View`, for `ragbed report --labels`
    cause      a `FinerCause` (ragbed.experiments.analysis.causes), which replaces causes in some cases
    metric     a `MetricGroup`; it is scored if a benchmark's scheme names it, or always if it has `material`
    scheduler  a `Schedule` class (ragbed.experiments.running.hooks); the setting `race` uses the one named "race"
    follow_up  a `FollowUp` class (ragbed.experiments.running.hooks); the setting `probe` gives its name
    trajectory functions that show the calls of an answer: `draw` as lines for a terminal of a width, `lines` as JSON,
               `show_two` prints those of two cells
    refusal    functions of ragbed.experiments.guests.refusals: `read` tells whether a text refuses, `sentence` is
               how to refuse a question, `settle` decides an answer's outcome, `note` writes the summary's note
    measure    `metrics`: a function from a plan and a run's folder to notes, which computes users' metrics again
    parser     a function from bytes and a source name to HTML or a `Document`; the name is a suffix, as in ".epub"
    ocr        a parser, as above, that also recognises text in pictures; used for `--ocr`
    records    a function from a path to the records (ragbed.documents.sources.Record) of a file, each parsed as a
               document; the name is a suffix, which also needs a parser
    provider   a `ModelProvider` (ragbed.agents.models); the name is a model's name, or a prefix such as "gguf:"
    context    an async function from a server's `Address`, a model and the wanted tokens or None to the name to request
               and the model's `Context` or None
    launcher   a `ShardLauncher` (ragbed.experiments.commands.options); the name is the NAME in `--launcher NAME:...`
    cache      a function from the settings of a run to a `CallCache` (ragbed.experiments.running.reuse) or None;
               the name is "calls"
    inputs     functions of ragbed.experiments.guests.cell_inputs: `run` and `differences` say what cells were made from
    run_view   a function from a finished run to a list of `View`, for its report
    pair_note  a function from two `ComparedRun` and their matches to sentences, for `ragbed compare`
    toolbox    `check`: a function from a list, the value of a strategy's parameter `tools`, to the validated list; it
               raises SettingsError. `open`: a function from that list to an async context manager of a `Toolbox`
               (ragbed.agents.tools). `index` and `chunks`: functions that make the documents for it, as in
               ragbed.experiments.guests.agent_tools.corpora
    tool       a function with annotated arguments that returns text, for the server's MCP endpoint

If an installed guest cannot be used, it is left out, and the logger `ragbed.guests` says why in one line on stderr.
Everything else still works.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from os.path import isfile  # `Path.is_file` would raise OSError for long names
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

Slot = Literal["command", "opener", "comparison", "exporter", "table", "analysis", "breakdown", "finding", "setting",
               "benchmark", "reasoning", "retrieval", "history", "prompts", "retriever", "reranker", "vectors",
               "pipeline", "judge", "answers", "metric", "cause", "parser", "records", "ocr", "tool", "toolbox",
               "scheduler", "follow_up", "grade", "labels", "launcher", "provider", "context", "cache", "refusal",
               "measure", "estimate", "partial", "control", "inputs", "run_view", "pair_note", "trajectory"]
SLOTS: tuple[Slot, ...] = get_args(Slot)
GROUP = "ragbed.guests"  # group of the entry points
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Guest:
    """Lists what one optional part adds.

    Attributes:
        name: name of the guest, unique among guests.
        adds: "module:attribute" strings by slot and name.
        origin: the distribution of an installed guest; empty for ragbed's own guests.
    """

    name: str
    adds: Mapping[Slot, Mapping[str, str]] = field(default_factory=dict)
    origin: str = ""


_IN = "ragbed.experiments.guests"
_DATA = f"{_IN}.datasets"
_FILES = f"{_IN}.pipelines.answer_files"
_MORE = f"{_IN}.more_strategies"
_AS_IT_IS = (  # suffixes of files that are shown as they are
    ".log", ".py", ".pyi", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".scala", ".go", ".rs", ".c", ".h",
    ".cc", ".cpp", ".hpp", ".cs", ".swift", ".rb", ".php", ".pl", ".lua", ".r", ".jl", ".m", ".sh", ".bash", ".ps1",
    ".sql", ".css", ".scss", ".vue", ".tex", ".bib", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".srt", ".vtt",
    ".proto")
BUILT_IN: tuple[Guest, ...] = (
    Guest("agent", {"reasoning": {"react": f"{_IN}.agent.react:react", "agent": f"{_IN}.agent.agent:agent"},
                    "prompts": {"agent": f"{_IN}.agent:PROMPTS"}}),
    Guest("agent_tools", {"toolbox": {
        "check": f"{_IN}.agent_tools.toolbox:check_tools", "open": f"{_IN}.agent_tools.toolbox:open_toolbox",
        "index": f"{_IN}.agent_tools.corpora:IndexCorpus", "chunks": f"{_IN}.agent_tools.corpora:open_chunks"}}),
    Guest("more_strategies", {
        "reasoning": {name: f"{_MORE}.reasoning.{name}:{name}" for name in (
            "self_consistency", "native", "semi_structured", "tree_of_thought", "self_ask", "ircot",
            "chain_of_verification", "reflect", "quote_first", "table_first", "program_aided", "sufficient",
            "supported")},
        "retrieval": {name: f"{_MORE}.retrieval.{name}:{name}" for name in (
            "multi_query", "hyde", "step_back", "corrective", "adaptive")},
        "prompts": {"more_strategies": f"{_MORE}:PROMPTS"}}),
    Guest("own_judges", {
        "judge": {"rubric": f"{_IN}.own_judges.judges:RubricJudge", "python": f"{_IN}.own_judges.judges:PythonJudge"},
        "metric": {"own_judges": f"{_IN}.own_judges.judges:JUDGEMENTS"},
        "analysis": {"judges": f"{_IN}.own_judges.judge_views:judge_views"},
        "run_view": {"pairwise": f"{_IN}.own_judges.stored_pairs:pair_views"},
        "pair_note": {"pairwise": f"{_IN}.own_judges.stored_pairs:note_pairs"},
        "prompts": {"own_judges": f"{_IN}.own_judges:PROMPTS"}}),
    Guest("answer_support", {
        "setting": {"support": f"{_IN}.answer_support.support_checks:SupportSetting"},
        "metric": {name: f"{_IN}.answer_support.support_metrics:{name.upper()}" for name in ("sentences", "nuggets")}}),
    Guest("answer_grading", {"grade": {"lexical": f"{_IN}.answer_grading.lexical:grade",
                                       "steps": f"{_IN}.answer_grading.held_steps:find_held_steps"}}),
    Guest("refusals", {
        "refusal": {"read": f"{_IN}.refusals.wording:read_refusal", "sentence": f"{_IN}.refusals.wording:refusal_for",
                    **{name: f"{_IN}.refusals.decision:{name}_refusal" for name in ("settle", "note")}},
        "setting": {"refusals": f"{_IN}.refusals.decision:RefusalModel"},
        "prompts": {"refusals": f"{_IN}.refusals:PROMPTS"}}),
    Guest("demo", {"command": {"demo": f"{_IN}.demo.commands:demo"}}),
    Guest("exports", {"command": {"export": f"{_IN}.exports.commands:export",
                                  "plot": f"{_IN}.exports.commands:plot",
                                  **{name: f"{_IN}.exports.commands:{name.replace(' ', '_')}"
                                     for name in ("cassette export", "cassette show")}},
                      "table": {"records": f"{_IN}.exports.record_tables:run_rows",
                                "html": f"{_IN}.exports.tables:to_html"}}),
    Guest("call_cache", {"setting": {"cache": f"{_IN}.call_cache.cached_calls:CacheSettings"},
                         "cache": {"calls": f"{_IN}.call_cache.cached_calls:open_calls"}}),
    Guest("cell_inputs", {"inputs": {"run": f"{_IN}.cell_inputs.cell_identity:inputs_of_run",
                                     "differences": f"{_IN}.cell_inputs.cell_identity:find_differences"},
                          "run_view": {"inputs": f"{_IN}.cell_inputs.cell_identity:inputs_views"},
                          "pair_note": {"inputs": f"{_IN}.cell_inputs.cell_identity:note_differences"}}),
    Guest("effects", {"command": {"effects": f"{_IN}.effects.commands:effects"},
                      "finding": {"effects": f"{_IN}.effects.effects:find_effects"},
                      "analysis": {"effects": f"{_IN}.effects.effects:view_effects"}}),
    Guest("early_stopping", {"scheduler": {"race": f"{_IN}.early_stopping.schedule:RaceSchedule"}}),
    Guest("citation_ablation", {
        "follow_up": {"citations": f"{_IN}.citation_ablation.ablation:CitationAblation"},
        "metric": {"citation_ablation": f"{_IN}.citation_ablation.ablation_metrics:CITATION_ABLATION"},
        "analysis": {"citation_ablation": f"{_IN}.citation_ablation.ablation_views:ablation_views"}}),
    Guest("trajectories", {
        "metric": {"trajectory": f"{_IN}.trajectories.trajectory_figures:TRAJECTORY"},
        "analysis": {"trajectories": f"{_IN}.trajectories.trajectory_views:trajectory_views"},
        "trajectory": {"lines": f"{_IN}.trajectories.drawing:lines_as_json",
                       **{name: f"{_IN}.trajectories.drawing:{name}" for name in ("draw", "show_two")}},
        "cause": {name: f"{_IN}.trajectories.trajectory_causes:{name.upper()}" for name in (
            "gave_up", "never_found", "not_opened", "not_used")}}),
    Guest("own_metrics", {
        "command": {"check metric": f"{_IN}.own_metrics.commands:check_metric"},
        "setting": {"metrics": f"{_IN}.own_metrics.measuring:OwnMetrics"},
        "metric": {"own_metrics": f"{_IN}.own_metrics.measuring:GROUP"},
        "measure": {"metrics": f"{_IN}.own_metrics.measuring:refresh"}}),
    Guest("office", {"parser": {
        **dict.fromkeys((".csv", ".tsv"), f"{_IN}.office.spreadsheets:parse_csv"),
        **dict.fromkeys((".xlsx", ".xlsm"), f"{_IN}.office.workbooks:parse_xlsx"),
        **dict.fromkeys((".docx", ".docm"), f"{_IN}.office.word:parse_docx"),
        **dict.fromkeys((".pptx", ".pptm"), f"{_IN}.office.slides:parse_pptx")}}),
    Guest("formats", {
        "parser": {
            ".eml": f"{_IN}.formats.email_messages:parse_eml", ".msg": f"{_IN}.formats.email_messages:parse_msg",
            ".epub": f"{_IN}.formats.books:parse_epub",
            ".json": f"{_IN}.formats.structured:parse_json", ".ipynb": f"{_IN}.formats.structured:parse_json",
            ".jsonl": f"{_IN}.formats.structured:parse_record", ".ndjson": f"{_IN}.formats.structured:parse_record",
            ".xml": f"{_IN}.formats.structured:parse_xml",
            ".rst": f"{_IN}.formats.texts:parse_rst", ".rtf": f"{_IN}.formats.texts:parse_rtf",
            **dict.fromkeys((".odt", ".ott", ".ods", ".odp"), f"{_IN}.formats.open_documents:parse_open_document"),
            **dict.fromkeys(_AS_IT_IS, f"{_IN}.formats.texts:parse_code")},
        "ocr": {".pdf": f"{_IN}.formats.text_recognition:parse_scanned_pdf"},
        "records": dict.fromkeys((".jsonl", ".ndjson"), f"{_IN}.formats.structured:find_records")}),
    Guest("pull_requests", {"command": {"gate": f"{_IN}.pull_requests.commands:gate"}}),
    Guest("rescoring", {"command": {"rescore": f"{_IN}.rescoring.commands:rescore",
                                    "verify": f"{_IN}.rescoring.commands:verify"}}),
    Guest("leaderboard", {"command": {"leaderboard": f"{_IN}.leaderboard.commands:leaderboard"}}),
    Guest("watching", {"command": {"watch": f"{_IN}.watching.commands:watch"},
                       "partial": {"summary": f"{_IN}.watching.partial:summarise_partial"},
                       "control": {"run": f"{_IN}.watching.control:open_control"}}),
    Guest("label_correction", {
        "command": {"judge": f"{_IN}.label_correction.commands:judge"},
        "labels": {"corrected": f"{_IN}.label_correction.commands:label_views"}}),
    Guest("more_retrievers", {"retriever": {"expanded": f"{_IN}.more_retrievers:Expanded",
                                            "mmr": f"{_IN}.more_retrievers:Mmr"}}),
    Guest("learned_retrievers", {
        "retriever": {"sparse": f"{_IN}.learned_retrievers:Sparse",
                      "late_interaction": f"{_IN}.learned_retrievers:LateInteractionSearch"},
        "reranker": {"late_interaction": f"{_IN}.learned_retrievers.late_interaction:LateInteraction"}}),
    Guest("external_retrievers", {"retriever": {"external": f"{_IN}.external_retrievers:External"}}),
    Guest("pipelines", {
        "command": {"import": f"{_IN}.pipelines.commands:import_"},
        "pipeline": {"http": f"{_IN}.pipelines.http_endpoint:Http",
                     "openai": f"{_IN}.pipelines.chat_completions:ChatCompletions",
                     "langchain": f"{_IN}.pipelines.frameworks:LangChain",
                     "langgraph": f"{_IN}.pipelines.frameworks:LangGraph",
                     "haystack": f"{_IN}.pipelines.frameworks:Haystack",
                     "llamaindex": f"{_IN}.pipelines.frameworks:LlamaIndex",
                     "python": f"{_IN}.pipelines.python_code:Python",
                     "command": f"{_IN}.pipelines.command:Command",
                     "predictions": f"{_IN}.pipelines.predictions:Predictions"},
        "answers": {"trec_rag": f"{_FILES}.trec_rag:TREC_RAG", "inspect": f"{_FILES}.inspect_log:INSPECT",
                    "ragas": f"{_FILES}.ragas:RAGAS", "ragchecker": f"{_FILES}.ragchecker:RAGCHECKER",
                    "jsonl": f"{_FILES}.plain_jsonl:JSONL"}}),
    Guest("run_estimates", {"estimate": {"run": f"{_IN}.run_estimates.cost_tables:show_estimates"}}),
    Guest("prompt_preview", {"command": {"show-prompt": f"{_IN}.prompt_preview.commands:show_prompt"}}),
    Guest("conformance", {"command": {"check strategy": f"{_IN}.conformance.commands:check_strategy",
                                      "new strategy": f"{_IN}.conformance.new_strategy:new_strategy"}}),
    Guest("serving", {"command": {"serve": f"{_IN}.serving.commands:serve"}}),
    Guest("traffic", {
        "command": {"questions": f"{_IN}.traffic.commands:questions",
                    "copy-traffic": f"{_IN}.traffic.commands:copy_traffic",
                    "forget": f"{_IN}.traffic.commands:forget"},
        "opener": {"traffic.sqlite": f"{_IN}.traffic.traffic_runs:open_run_folder"},
        "comparison": {"traffic.sqlite": f"{_IN}.traffic.ab_test:compare_traffic"}}),
    Guest("operations", {"setting": {"serve": f"{_IN}.operations.serve_settings:ServeSettings"}}),
    Guest("access", {"command": {"leaks": f"{_IN}.access.commands:leaks"},
                     "setting": {"allow": f"{_IN}.access.access_rule:check_rule"}}),
    Guest("doctor", {"command": {"doctor": f"{_IN}.doctor.commands:doctor"},
                     "context": {"ollama": f"{_IN}.doctor.ollama:request_context"}}),
    Guest("milvus", {"vectors": {"milvus": f"{_IN}.milvus.collection:Milvus"}}),
    Guest("cluster", {"command": {"merge": f"{_IN}.cluster.commands:merge"},
                      "launcher": {"local": f"{_IN}.cluster.launcher:LAUNCHER",
                                   "ray": f"{_IN}.cluster.ray_nodes:LAUNCHER"}}),
    Guest("local_models", {
        "command": {"models list": f"{_IN}.local_models.commands:list_models",
                    "models pull": f"{_IN}.local_models.commands:pull_model"},
        "provider": dict.fromkeys(("smollm2-135m", "gguf:", "hf:"), f"{_IN}.local_models.provider:PROVIDER")}),
    Guest("providers", {"provider": dict.fromkeys((
        "gemini:", "mistral:", "groq:", "openrouter:", "together:", "deepseek:", "xai:", "azure:", "ollama:",
        "lmstudio:", "vllm:", "litellm:", "anthropic:", "google_genai:", "bedrock:", "langchain:"),
        f"{_IN}.providers.provider_table:PROVIDER")}),
    Guest("retrieval_evaluation", {"command": {
        "evaluate-retrieval": f"{_IN}.retrieval_evaluation.commands:evaluate_retrieval"}}),
    Guest("review", {"command": {"review": f"{_IN}.review.commands:review"}}),
    Guest("datasets", {
        "benchmark": {"crest": f"{_DATA}.crest:Crest",
                      "mrceval": f"{_DATA}.mrceval:Mrceval",
                      "mdbench": f"{_DATA}.mdbench:Mdbench",
                      "detectiveqa": f"{_DATA}.detectiveqa:DetectiveQa",
                      "mrke": f"{_DATA}.mrke:Mrke",
                      "hotpotqa": f"{_DATA}.hotpotqa:HotpotQa",
                      "musique": f"{_DATA}.musique:Musique",
                      "two_wiki": f"{_DATA}.two_wiki:TwoWiki",
                      "morehopqa": f"{_DATA}.morehopqa:MoreHopQa",
                      "multihop_rag": f"{_DATA}.multihop_rag:MultiHopRag",
                      "clapnq": f"{_DATA}.clapnq:ClapNq",
                      "squad2": f"{_DATA}.squad2:Squad2",
                      "rgb": f"{_DATA}.rgb:Rgb",
                      "financebench": f"{_DATA}.financebench:FinanceBench",
                      "korean_rag": f"{_DATA}.korean_rag:KoreanRag",
                      "mtrag": f"{_DATA}.mtrag:Mtrag",
                      "beir": f"{_DATA}.beir:Beir",
                      "trec": f"{_DATA}.trec:Trec",
                      "chunking_eval": f"{_DATA}.chunking_eval:ChunkingEval",
                      "browsecomp_plus": f"{_DATA}.browsecomp_plus:BrowseCompPlus",
                      "longmemeval": f"{_DATA}.longmemeval:LongMemEval"},
        "answers": {"browsecomp_plus": f"{_DATA}.browsecomp_plus:RUN_FILES",
                    "longmemeval": f"{_DATA}.longmemeval:HYPOTHESES"},
        "analysis": {"papers": f"{_DATA}.published_tables:paper_views"},
        "breakdown": {**{name: f"{_DATA}.benchmark_views:{name}" for name in ("order", "wins", "depth", "gap")},
                      "browsing": f"{_DATA}.browsecomp_plus:browsing",
                      "memory": f"{_DATA}.longmemeval:memory"}}),
    Guest("question_files", {
        "benchmark": {"questions": f"{_IN}.question_files.question_file:QuestionFile"},
        "answers": dict.fromkeys(("opentelemetry", "langfuse", "promptfoo"), f"{_IN}.question_files.traces:TRACES")}),
    Guest("hard_negatives", {
        "command": {"negatives": f"{_IN}.hard_negatives.commands:negatives",
                    "dose": f"{_IN}.hard_negatives.commands:dose"},
        "benchmark": {"mined": f"{_IN}.hard_negatives.benchmark:MinedBenchmark"},
        "exporter": {"decisions.jsonl": f"{_IN}.hard_negatives.exports:export_negatives"},
        "finding": {"dose": f"{_IN}.hard_negatives.dose:dose_finding"},
        "analysis": {"dose": f"{_IN}.hard_negatives.dose_views:dose_analysis"}}),
    Guest("injection", {"benchmark": {"injection": f"{_IN}.injection.loader:Injection"},
                        "analysis": {"attacks": f"{_IN}.injection.loader:attack_views"}}),
    Guest("construct", {"command": {"construct": f"{_IN}.construct.commands:construct"},
                        "benchmark": {"computed": f"{_IN}.construct.computed_benchmark:Computed"},
                        "analysis": {"worlds": f"{_IN}.construct.computed_benchmark:world_views",
                                     "twins": f"{_IN}.construct.computed_benchmark:twin_views"}}),
)


def own_entries(slot: Slot) -> dict[str, str]:
    """Return the "module:attribute" of each name that ragbed's own guests add to a slot."""
    return {name: target for guest in BUILT_IN for name, target in guest.adds.get(slot, {}).items()}


@cache
def installed() -> tuple[Guest, ...]:
    """Return the usable guests of other distributions, ordered by the names of their entry points."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(guest for point in points if (guest := _load_guest(point)) is not None)


def entries(slot: Slot) -> dict[str, str]:
    """Return the "module:attribute" of each name in a slot. If two guests add the same name, the first is used.
    Ragbed's own guests come first."""
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    for guest in _guests():
        for name, target in guest.adds.get(slot, {}).items():
            if name in found:
                leave_out(f"{slot} {name!r} of the guest {guest.name}", f"{owners[name]} adds it already")
            else:
                found[name], owners[name] = target, guest.name
    return found


def load(target: str) -> Any:
    """Import the attribute of a "module:attribute" string. Raises SettingsError if an installed guest has no such
    attribute, or its module cannot be imported."""
    module, _, attribute = target.partition(":")
    if module.startswith("ragbed."):  # not caught, because a missing module of ragbed is a bug
        return getattr(import_module(module), attribute)
    from ragbed.documents.errors import SettingsError
    from ragbed.documents.user_code import UserCode

    with UserCode(lambda why: SettingsError(f"guest {target}: {why}")):
        return getattr(import_module(module), attribute)


def loaded(slot: Slot) -> dict[str, Any]:
    """Import everything that guests add to a slot, by name. What cannot be imported is left out."""
    from ragbed.documents.errors import SettingsError

    found: dict[str, Any] = {}
    for name, target in entries(slot).items():
        try:
            found[name] = load(target)
        except SettingsError as error:
            leave_out(f"{slot} {name!r}", str(error))
    return found


def load_kinds(slot: Slot, base: type[_T], taken: Collection[str] = ()) -> dict[str, type[_T]]:
    """Import the settings classes that guests add to a slot, by their `kind`. A class is left out if its kind is
    `taken`, if it is not a subclass of `base`, or if the default of its field `kind` is not its name in the slot."""
    found: dict[str, type[_T]] = {}
    for name, one in loaded(slot).items():
        kind = getattr(one, "model_fields", {}).get("kind") if isinstance(one, type) and issubclass(one, base) else None
        if kind is None or kind.default != name:
            leave_out(f"{slot} {name!r}", f"{one!r:.80} is not a subclass of {base.__name__} with the field "
                                          f"kind: Literal[{name!r}] = {name!r}")
        elif name in taken:
            leave_out(f"{slot} {name!r}", "ragbed itself has this kind; rename the guest's")
        else:
            found[name] = one
    return found


@cache
def leave_out(what: str, why: str) -> None:
    """Log once that a part of a guest cannot be used."""
    import logging

    logging.getLogger(__name__).warning("%s is left out: %s", what, why)



def load_for_folder(slot: Slot, *folders: Path) -> Any:
    """Import the attribute that a slot lists under the name of a file in one of the folders; None if there is no such
    file."""
    found = next((target for name, target in entries(slot).items()
                  if any(isfile(folder / name) for folder in folders)), None)
    return found and load(found)


def locate_run(folder: Path) -> Path:
    """Return the folder of a run. If a guest has an opener for this folder, such as for a server's traffic, the opener
    may update the summary and return another folder."""
    opener = load_for_folder("opener", folder, folder.parent)
    return Path(opener(folder)) if opener else folder


def _guests() -> Iterator[Guest]:
    yield from BUILT_IN
    yield from installed()


def _load_guest(point: EntryPoint) -> Guest | None:
    from ragbed.documents.errors import SettingsError

    origin = point.dist.name if point.dist else point.value
    try:
        found = load(point.value)
    except SettingsError as error:
        return leave_out(f"guest {point.name} of {origin}", str(error))
    if not isinstance(found, Guest):
        return leave_out(f"guest {point.name} of {origin}", f"{point.value} is not a ragbed.guests.Guest")
    if unknown := [slot for slot in found.adds if slot not in SLOTS]:
        return leave_out(f"guest {point.name} of {origin}",
                         f"there is no slot {unknown[0]!r}; the slots are {', '.join(SLOTS)}")
    return Guest(found.name, found.adds, origin)
