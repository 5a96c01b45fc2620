"""`ragbed serve`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ragbed.experiments.commands.help import MORE
from ragbed.experiments.commands.options import refuse


def _more(*names: str, **options: Any) -> Any:
    """Return an option that the help shows under further options."""
    return typer.Option(*names, rich_help_panel=MORE, **options)


Target = Annotated[Path, typer.Argument(metavar="TARGET", help="A finished run, a settings file, or an index.")]
Model = Annotated[str | None, typer.Option(help="Model, if TARGET is an index; see `ragbed ask`.")]
Reasoning = Annotated[str | None, typer.Option(help="Reasoning strategy, if TARGET is an index.")]
Retrieval = Annotated[str | None, typer.Option(help="Retrieval strategy, if TARGET is an index.")]
Retriever = Annotated[str | None, typer.Option(help="Retriever, if TARGET is an index.")]
ChunksPerSearch = Annotated[int | None, typer.Option("-k", min=1, help="Chunks per search, if TARGET is an index.")]
MaxTokens = Annotated[int | None, _more(min=1, help="Maximum tokens per reply, if TARGET is an index. Default: 1024.")]
CallSeconds = Annotated[float | None, _more(min=0.1, help=(
    "Seconds per call of the model, if TARGET is an index. Default: 120."))]
Framing = Annotated[Literal["delimited", "datamarked", "none"] | None, _more(metavar="NAME", help=(
    "Marks of passages: delimited (default), datamarked, none."))]
Headers = Annotated[bool, _more("--headers", help="Prompts name document, section and page of each passage.")]
Where = Annotated[list[str] | None, _more("--where", help="Filter, if TARGET is an index, e.g. 'page >= 3'.")]
Host = Annotated[str, typer.Option(help="Address to listen on; other machines need --keys.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.")]
BaseUrl = Annotated[str, typer.Option(help="Base URL of document links. Default: that of the request.")]
TrafficFolder = Annotated[Path | None, typer.Option("--traffic", metavar="DIR", help=(
    "Folder for questions, answers and feedback. Default: traffic."))]
Threads = Annotated[str | None, _more("--threads", metavar="PLACE", help=(
    "Where to store conversations: FILE, or postgresql://... (and traffic)."))]
CitationForm = Annotated[str, typer.Option(help="How answers name sources: annotations, markdown, both.")]
Explore = Annotated[float, typer.Option(min=0, max=1, help=(
    "A/B test: share of conversations given to cells other than the first."))]
KeyFile = Annotated[Path | None, typer.Option("--keys", metavar="FILE", help=(
    "File of API keys, one NAME KEY per line. Default: RAGBED_KEYS."))]
Allow = Annotated[list[str] | None, _more("--allow", metavar="RULE", help=(
    "Who may read which documents, e.g. 'groups in key.groups'."))]
Owner = Annotated[str, _more("--as", metavar="NAME", help="Owner of the key whose documents --mcp may read.")]
AllowServer = Annotated[bool, _more("--allow-server", help=(
    "Trust the servers that TARGET names with questions, passages and API key."))]
Grace = Annotated[float, _more("--grace", min=0, help="Seconds that running answers have when the server stops.")]
HostNames = Annotated[list[str] | None, _more("--name", metavar="HOST", help="Additional host name of the server.")]
QuestionRate = Annotated[str, _more("--rate", help="Questions per key, such as 10/second.")]
Concurrency = Annotated[int, _more(min=1, help="Maximum concurrent answers.")]
Waiting = Annotated[int, _more("--queue", min=0, help="Maximum waiting requests; more get HTTP 429.")]
MaxConnections = Annotated[int | None, _more("--connections", min=1, help=(
    "Maximum connections of all workers; half from one address. Default: 1000."))]
MaxQuestion = Annotated[int, _more(min=1, help="Maximum characters of a question.")]
MaxTask = Annotated[int, _more(min=0, help=(
    "Maximum characters of a client program's prompt; 0: none."))]
KeepDays = Annotated[float | None, _more("--keep-days", min=0, metavar="N", help=(
    "Delete answers after this many days."))]
Workers = Annotated[int, _more(min=1, max=64, metavar="N", help="Number of processes that answer requests.")]
Timeout = Annotated[float, _more(min=1, help="Seconds that a request may take.")]
Title = Annotated[str, _more("--title", help="Title of the chat page.")]
Examples = Annotated[list[str] | None, _more("--example", metavar="QUESTION", help=(
    "Example question on the chat page; repeatable."))]
Stdio = Annotated[bool, typer.Option("--mcp", help="Serve the MCP tools over stdin and stdout instead.")]
Log = Annotated[str, _more("--log", help="Form of the line per request: text, json or off.")]
RootPath = Annotated[str, _more("--root-path", metavar="PATH", help="Path that a proxy serves it under, e.g. /rag.")]
Proxies = Annotated[list[str] | None, _more("--proxy", metavar="NETWORK", help=(
    "Proxy whose X-Forwarded headers to believe, e.g. 10.0.0.0/8; repeatable."))]
Origins = Annotated[list[str] | None, _more("--origin", metavar="ORIGIN", help=(
    "Other site whose pages may use the API; repeatable."))]
Fallback = Annotated[str | None, _more("--fallback", metavar="MODEL", help=(
    "Model that answers if the first one fails or is slow."))]
FallbackAfter = Annotated[float | None, _more("--fallback-after", min=0.1, help=(
    "Seconds without text after which a model is slow. Default: 30."))]
CacheSeconds = Annotated[float | None, _more("--cache", metavar="SECONDS", min=0, help=(
    "Seconds for which the same question gets the stored answer."))]
Spend = Annotated[str, _more("--spend", metavar="LIMIT", help="US dollars per key, e.g. 5/day or 100/month.")]
LogTexts = Annotated[bool, _more("--log-texts", help="Write questions and answers into these lines.")]


def serve(
        target: Target, model: Model = None, reasoning: Reasoning = None, retrieval: Retrieval = None,
        retriever: Retriever = None, k: ChunksPerSearch = None, max_tokens: MaxTokens = None,
        call_seconds: CallSeconds = None, framing: Framing = None, headers: Headers = False, where: Where = None,
        host: Host = "127.0.0.1", port: Port = 8700, url: BaseUrl = "", traffic: TrafficFolder = None,
        threads: Threads = None, citations: CitationForm = "annotations", explore: Explore = 0.0, keys: KeyFile = None,
        allow: Allow = None, owner: Owner = "", names: HostNames = None, rate: QuestionRate = "60/minute",
        concurrency: Concurrency = 64, queue: Waiting = 64, connections: MaxConnections = None,
        max_question: MaxQuestion = 4000, max_task: MaxTask = 32_000, timeout: Timeout = 900,
        keep_days: KeepDays = None, workers: Workers = 1,
        root_path: RootPath = "", proxies: Proxies = None, origins: Origins = None, log: Log = "text",
        log_texts: LogTexts = False, fallback: Fallback = None, fallback_after: FallbackAfter = None,
        cache: CacheSeconds = None, spend: Spend = "", title: Title = "Ask the documents", examples: Examples = None,
        mcp: Stdio = False, allow_server: AllowServer = False, grace: Grace = 30,
) -> None:
    """Serve configurations: an OpenAI-compatible API and a chat page.

    The base URL for clients is http://127.0.0.1:8700/v1, and a model is the name of a configuration. MCP clients use
    http://127.0.0.1:8700/mcp. `ragbed show`, `diagnose`, `report` and `compare` read the folder of --traffic like a
    run.
    """
    _check_packages(mcp)
    from ragbed.agents.database import is_postgres
    from ragbed.experiments.guests.operations.edge import EdgeSettings
    from ragbed.experiments.guests.operations.server_settings import ServerSettings
    from ragbed.experiments.guests.serving import app, configurations
    from ragbed.experiments.guests.serving.middleware import GateSettings, Rate
    from ragbed.experiments.guests.serving.size_limits import SizeLimits
    from ragbed.experiments.guests.serving.state import PageSettings

    if traffic is not None and is_postgres(threads):
        refuse("--traffic has no effect, because the PostgreSQL database of --threads stores the traffic too; omit it, "
               "and copy the traffic to a folder with `ragbed copy-traffic`")
    if allow_server:
        configurations.allow_target(target)
    given = given_settings(model=model, reasoning=reasoning, retrieval=retrieval, retriever=retriever, where=where, k=k,
                           max_tokens=max_tokens, call_seconds=call_seconds, framing=framing, headers=headers or None)
    app.serve(target, given, ServerSettings(
        traffic=traffic or Path("traffic"), threads=threads, keep_days=keep_days, host=host, port=port, url=url,
        names=tuple(names or ()), keys=keys, allow=tuple(allow or ()), mcp=mcp, owner=owner, workers=workers,
        limits=GateSettings(rate=Rate(rate), concurrency=concurrency, queue=queue, seconds=timeout, grace=grace),
        connections=connections, edge=EdgeSettings.read(log, root_path, proxies or (), origins or ()),
        sizes=SizeLimits(max_question, task=max_task), page=PageSettings(title, tuple(examples or ())),
        answering=_given(fallback=fallback, fallback_after=fallback_after, cache=cache),
        citations=citations, explore=explore, spend=spend, log_texts=log_texts))  # type: ignore[arg-type]


def _check_packages(mcp: bool) -> None:
    from ragbed.documents.errors import MissingExtra

    MissingExtra.check("serve", "fastapi", "prometheus_client", "uvicorn")
    if mcp:
        MissingExtra.check("mcp", "mcp")


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def given_settings(**options: Any) -> dict[str, Any]:
    """Return the assistant settings that were given as options, by name."""
    from ragbed.agents.model_settings import CallLimits, Limits, ModelSettings
    from ragbed.experiments.settings.texts import parse_model, parse_retriever, parse_spec
    from ragbed.strategies.settings.strategy_config import parse_strategy

    given = _given(**options)
    if "max_tokens" in given:
        given["limits"] = Limits(max_tokens=given.pop("max_tokens"))
    seconds = {"calls": CallLimits(seconds=given.pop("call_seconds"))} if "call_seconds" in given else {}
    if "model" in given:
        given["model"], calls = parse_model(given["model"], **seconds)
        given |= {"calls": calls} if calls.models or seconds else {}
    elif seconds:
        given["calls"] = ModelSettings(**seconds)
    for family in ("reasoning", "retrieval"):
        if family in given:
            given[family] = parse_strategy(family, parse_spec(given[family], f"--{family}")).spec
    if "retriever" in given or "where" in given:
        given["retriever"], given["where"] = parse_retriever(given.get("retriever", "dense"), given.get("where", []))
    return given
