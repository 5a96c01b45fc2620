"""List what ragbed's own guests add, as "module:attribute" by guest, slot and name. `ragbed.guests` explains slots."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragbed.guests import Slot

_IN = "ragbed.experiments.guests"
_DATA = f"{_IN}.datasets"
_FILES = f"{_IN}.pipelines.answer_files"
_MORE = f"{_IN}.more_strategies"
_AS_IT_IS = (  # suffixes of files that are shown as they are
    ".log", ".py", ".pyi", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".scala", ".go", ".rs", ".c", ".h",
    ".cc", ".cpp", ".hpp", ".cs", ".swift", ".rb", ".php", ".pl", ".lua", ".r", ".jl", ".m", ".sh", ".bash", ".ps1",
    ".sql", ".css", ".scss", ".vue", ".tex", ".bib", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".srt", ".vtt",
    ".proto")
BUILT_IN: Mapping[str, Mapping[Slot, Mapping[str, str]]] = {
    "agent": {"reasoning": {"react": f"{_IN}.agent.react:react", "agent": f"{_IN}.agent.agent:agent"},
              "prompts": {"agent": f"{_IN}.agent:PROMPTS"}},
    "agent_tools": {"toolbox": {
        "check": f"{_IN}.agent_tools.toolbox:check_tools", "open": f"{_IN}.agent_tools.toolbox:open_toolbox",
        "index": f"{_IN}.agent_tools.corpora:IndexCorpus", "chunks": f"{_IN}.agent_tools.corpora:open_chunks"}},
    "more_strategies": {
        "reasoning": {name: f"{_MORE}.reasoning.{name}:{name}" for name in (
            "self_consistency", "native", "semi_structured", "tree_of_thought", "self_ask", "ircot",
            "chain_of_verification", "reflect", "quote_first", "table_first", "program_aided", "sufficient",
            "supported")},
        "retrieval": {name: f"{_MORE}.retrieval.{name}:{name}" for name in (
            "multi_query", "hyde", "step_back", "corrective", "adaptive")},
        "prompts": {"more_strategies": f"{_MORE}:PROMPTS"}},
    "own_judges": {
        "judge": {"rubric": f"{_IN}.own_judges.judges:RubricJudge", "python": f"{_IN}.own_judges.judges:PythonJudge"},
        "metric": {"own_judges": f"{_IN}.own_judges.judges:JUDGEMENTS"},
        "analysis": {"judges": f"{_IN}.own_judges.judge_views:judge_views"},
        "run_view": {"pairwise": f"{_IN}.own_judges.stored_pairs:pair_views"},
        "pair_note": {"pairwise": f"{_IN}.own_judges.stored_pairs:note_pairs"},
        "prompts": {"own_judges": f"{_IN}.own_judges:PROMPTS"}},
    "answer_support": {
        "setting": {"support": f"{_IN}.answer_support.support_checks:SupportSetting"},
        "metric": {name: f"{_IN}.answer_support.support_metrics:{name.upper()}" for name in ("sentences", "nuggets")}},
    "answer_grading": {"grade": {"lexical": f"{_IN}.answer_grading.lexical:grade",
                                 "steps": f"{_IN}.answer_grading.held_steps:find_held_steps"}},
    "refusals": {
        "refusal": {"read": f"{_IN}.refusals.wording:read_refusal", "sentence": f"{_IN}.refusals.wording:refusal_for",
                    **{name: f"{_IN}.refusals.decision:{name}_refusal" for name in ("settle", "note")}},
        "setting": {"refusals": f"{_IN}.refusals.decision:RefusalModel"},
        "prompts": {"refusals": f"{_IN}.refusals:PROMPTS"}},
    "demo": {"command": {"demo": f"{_IN}.demo.commands:demo"}},
    "exports": {"command": {"export": f"{_IN}.exports.commands:export",
                            "plot": f"{_IN}.exports.commands:plot",
                            **{name: f"{_IN}.exports.commands:{name.replace(' ', '_')}"
                               for name in ("cassette export", "cassette show")}},
                "table": {"records": f"{_IN}.exports.record_tables:run_rows",
                          "html": f"{_IN}.exports.tables:to_html"}},
    "call_cache": {"setting": {"cache": f"{_IN}.call_cache.cached_calls:CacheSettings"},
                   "cache": {"calls": f"{_IN}.call_cache.cached_calls:open_calls"}},
    "cell_inputs": {"inputs": {"run": f"{_IN}.cell_inputs.cell_identity:inputs_of_run",
                               "differences": f"{_IN}.cell_inputs.cell_identity:find_differences"},
                    "run_view": {"inputs": f"{_IN}.cell_inputs.cell_identity:inputs_views"},
                    "pair_note": {"inputs": f"{_IN}.cell_inputs.cell_identity:note_differences"}},
    "run_comparison": {"command": {"compare": f"{_IN}.run_comparison.commands:compare"}},
    "effects": {"command": {"effects": f"{_IN}.effects.commands:effects"},
                "finding": {"effects": f"{_IN}.effects.effects:find_effects"},
                "analysis": {"effects": f"{_IN}.effects.effects:view_effects"}},
    "early_stopping": {"scheduler": {"race": f"{_IN}.early_stopping.schedule:RaceSchedule"}},
    "citation_ablation": {
        "follow_up": {"citations": f"{_IN}.citation_ablation.ablation:CitationAblation"},
        "metric": {"citation_ablation": f"{_IN}.citation_ablation.ablation_metrics:CITATION_ABLATION"},
        "analysis": {"citation_ablation": f"{_IN}.citation_ablation.ablation_views:ablation_views"}},
    "trajectories": {
        "metric": {"trajectory": f"{_IN}.trajectories.trajectory_figures:TRAJECTORY"},
        "analysis": {"trajectories": f"{_IN}.trajectories.trajectory_views:trajectory_views"},
        "trajectory": {"lines": f"{_IN}.trajectories.drawing:lines_as_json",
                       **{name: f"{_IN}.trajectories.drawing:{name}" for name in ("draw", "show_two")}},
        "cause": {name: f"{_IN}.trajectories.trajectory_causes:{name.upper()}" for name in (
            "gave_up", "never_found", "not_opened", "not_used")}},
    "own_metrics": {
        "command": {"check metric": f"{_IN}.own_metrics.commands:check_metric"},
        "setting": {"metrics": f"{_IN}.own_metrics.measuring:OwnMetrics"},
        "metric": {"own_metrics": f"{_IN}.own_metrics.measuring:GROUP"},
        "measure": {"metrics": f"{_IN}.own_metrics.measuring:refresh"}},
    "office": {"parser": {
        **dict.fromkeys((".csv", ".tsv"), f"{_IN}.office.spreadsheets:parse_csv"),
        **dict.fromkeys((".xlsx", ".xlsm"), f"{_IN}.office.workbooks:parse_xlsx"),
        **dict.fromkeys((".docx", ".docm"), f"{_IN}.office.word:parse_docx"),
        **dict.fromkeys((".pptx", ".pptm"), f"{_IN}.office.slides:parse_pptx")}},
    "formats": {
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
        "records": dict.fromkeys((".jsonl", ".ndjson"), f"{_IN}.formats.structured:find_records")},
    "pull_requests": {"command": {"gate": f"{_IN}.pull_requests.commands:gate"}},
    "rescoring": {"command": {"rescore": f"{_IN}.rescoring.commands:rescore",
                              "verify": f"{_IN}.rescoring.commands:verify"}},
    "leaderboard": {"command": {"leaderboard": f"{_IN}.leaderboard.commands:leaderboard"}},
    "watching": {"command": {"watch": f"{_IN}.watching.commands:watch"},
                 "partial": {"summary": f"{_IN}.watching.partial:summarise_partial"},
                 "control": {"run": f"{_IN}.watching.control:open_control"}},
    "label_correction": {
        "command": {"judge": f"{_IN}.label_correction.commands:judge"},
        "labels": {"corrected": f"{_IN}.label_correction.commands:label_views"}},
    "more_retrievers": {"retriever": {"expanded": f"{_IN}.more_retrievers:Expanded",
                                      "mmr": f"{_IN}.more_retrievers:Mmr"}},
    "learned_retrievers": {
        "retriever": {"sparse": f"{_IN}.learned_retrievers:Sparse",
                      "late_interaction": f"{_IN}.learned_retrievers:LateInteractionSearch"},
        "reranker": {"late_interaction": f"{_IN}.learned_retrievers.late_interaction:LateInteraction"}},
    "external_retrievers": {"retriever": {"external": f"{_IN}.external_retrievers:External"}},
    "pipelines": {
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
                    "jsonl": f"{_FILES}.plain_jsonl:JSONL"}},
    "run_estimates": {"estimate": {"run": f"{_IN}.run_estimates.cost_tables:show_estimates"}},
    "prompt_preview": {"command": {"show-prompt": f"{_IN}.prompt_preview.commands:show_prompt"}},
    "conformance": {"command": {"check strategy": f"{_IN}.conformance.commands:check_strategy",
                                "new strategy": f"{_IN}.conformance.new_strategy:new_strategy"}},
    "serving": {"command": {"serve": f"{_IN}.serving.commands:serve"}},
    "traffic": {
        "command": {"questions": f"{_IN}.traffic.commands:questions",
                    "copy-traffic": f"{_IN}.traffic.commands:copy_traffic",
                    "forget": f"{_IN}.traffic.commands:forget"},
        "opener": {"traffic.sqlite": f"{_IN}.traffic.traffic_runs:open_run_folder"},
        "comparison": {"traffic.sqlite": f"{_IN}.traffic.ab_test:compare_traffic"}},
    "operations": {"setting": {"serve": f"{_IN}.operations.serve_settings:ServeSettings"}},
    "access": {"command": {"leaks": f"{_IN}.access.commands:leaks"},
               "setting": {"allow": f"{_IN}.access.access_rule:check_rule"}},
    "doctor": {"command": {"doctor": f"{_IN}.doctor.commands:doctor"},
               "context": {"ollama": f"{_IN}.doctor.ollama:request_context"}},
    "milvus": {"vectors": {"milvus": f"{_IN}.milvus.collection:Milvus"}},
    "cluster": {"command": {"merge": f"{_IN}.cluster.commands:merge"},
                "launcher": {"local": f"{_IN}.cluster.launcher:LAUNCHER",
                             "ray": f"{_IN}.cluster.ray_nodes:LAUNCHER"}},
    "local_models": {
        "command": {"models list": f"{_IN}.local_models.commands:list_models",
                    "models pull": f"{_IN}.local_models.commands:pull_model"},
        "provider": dict.fromkeys(("smollm2-135m", "gguf:", "hf:"), f"{_IN}.local_models.provider:PROVIDER")},
    "providers": {"provider": dict.fromkeys((
        "gemini:", "mistral:", "groq:", "openrouter:", "together:", "deepseek:", "xai:", "azure:", "ollama:",
        "lmstudio:", "vllm:", "litellm:", "anthropic:", "google_genai:", "bedrock:", "langchain:"),
        f"{_IN}.providers.provider_table:PROVIDER")},
    "retrieval_evaluation": {"command": {
        "evaluate-retrieval": f"{_IN}.retrieval_evaluation.commands:evaluate_retrieval"}},
    "review": {"command": {"review": f"{_IN}.review.commands:review"}},
    "datasets": {
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
                      "memory": f"{_DATA}.longmemeval:memory"}},
    "question_files": {
        "benchmark": {"questions": f"{_IN}.question_files.question_file:QuestionFile"},
        "answers": dict.fromkeys(("opentelemetry", "langfuse", "promptfoo"), f"{_IN}.question_files.traces:TRACES")},
    "hard_negatives": {
        "command": {"negatives": f"{_IN}.hard_negatives.commands:negatives",
                    "dose": f"{_IN}.hard_negatives.commands:dose"},
        "benchmark": {"mined": f"{_IN}.hard_negatives.benchmark:MinedBenchmark"},
        "exporter": {"decisions.jsonl": f"{_IN}.hard_negatives.exports:export_negatives"},
        "finding": {"dose": f"{_IN}.hard_negatives.dose:dose_finding"},
        "analysis": {"dose": f"{_IN}.hard_negatives.dose_views:dose_analysis"}},
    "injection": {"benchmark": {"injection": f"{_IN}.injection.loader:Injection"},
                  "analysis": {"attacks": f"{_IN}.injection.loader:attack_views"}},
    "construct": {"command": {"construct": f"{_IN}.construct.commands:construct"},
                  "benchmark": {"computed": f"{_IN}.construct.computed_benchmark:Computed"},
                  "analysis": {"worlds": f"{_IN}.construct.computed_benchmark:world_views",
                               "twins": f"{_IN}.construct.computed_benchmark:twin_views"}},
}
