"""`ragbed serve`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.experiments.commands.help import MORE

Target = Annotated[Path, typer.Argument(metavar="TARGET", help="A finished run, a settings file, or an index.")]
Where = Annotated[list[str] | None, typer.Option("--where", rich_help_panel=MORE, help=(
    "Filter, if TARGET is an index, e.g. 'page >= 3'."))]
Threads = Annotated[str | None, typer.Option("--threads", metavar="PLACE", rich_help_panel=MORE, help=(
    "Where to store conversations: a file or postgresql://..."))]
HostNames = Annotated[list[str] | None, typer.Option("--name", metavar="HOST", rich_help_panel=MORE, help=(
    "Additional host name of the server."))]


def serve(
        target: Target,
        model: Annotated[str | None, typer.Option(help="Model, if TARGET is an index; see `ragbed ask`.")] = None,
        reasoning: Annotated[str | None, typer.Option(help="Reasoning strategy, if TARGET is an index.")] = None,
        retrieval: Annotated[str | None, typer.Option(help="Retrieval strategy, if TARGET is an index.")] = None,
        retriever: Annotated[str | None, typer.Option(help="Retriever, if TARGET is an index.")] = None,
        k: Annotated[int | None, typer.Option("-k", min=1, help="Chunks per search, if TARGET is an index.")] = None,
        where: Where = None,
        host: Annotated[str, typer.Option(help="Address to listen on; other machines need --keys.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.")] = 8700,
        url: Annotated[str, typer.Option(help="Base URL of document links. Default: that of the request.")] = "",
        traffic: Annotated[Path, typer.Option("--traffic", metavar="DIR", help=(
            "Folder for questions, answers and feedback."))] = Path("traffic"),
        threads: Threads = None,
        citations: Annotated[str, typer.Option(help="How answers name sources: annotations, markdown, both.")
                             ] = "annotations",
        explore: Annotated[float, typer.Option(min=0, max=1, help=(
            "A/B test: share of conversations given to cells other than the first."))] = 0.0,
        keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help=(
            "File of API keys, one NAME KEY per line. Default: RAGBED_KEYS."))] = None,
        names: HostNames = None,
        rate: Annotated[str, typer.Option("--rate", rich_help_panel=MORE, help=(
            "Questions per key, such as 10/second."))] = "60/minute",
        concurrency: Annotated[int, typer.Option(min=1, rich_help_panel=MORE, help="Maximum concurrent answers.")] = 64,
        queue: Annotated[int, typer.Option(min=0, rich_help_panel=MORE, help=(
            "Maximum waiting requests; more get HTTP 429."))] = 64,
        max_question: Annotated[int, typer.Option(min=1, rich_help_panel=MORE, help=(
            "Maximum characters of a question."))] = 4000,
        timeout: Annotated[float, typer.Option(min=1, rich_help_panel=MORE, help="Seconds that a request may take.")
                           ] = 900,
        mcp: Annotated[bool, typer.Option("--mcp", help="Serve the MCP tools over stdin and stdout instead.")] = False,
) -> None:
    """Serve configurations: an OpenAI-compatible API and a chat page.

    The base URL for clients is http://127.0.0.1:8700/v1, and a model is the name of a configuration. MCP clients use
    http://127.0.0.1:8700/mcp. `ragbed show`, `diagnose`, `report` and `compare` read the folder of --traffic like a
    run.
    """
    from ragbed.documents.errors import MissingExtra
    from ragbed.experiments.commands.ask import given_settings

    MissingExtra.check("serve", "fastapi", "prometheus_client", "uvicorn")
    if mcp:
        MissingExtra.check("mcp", "mcp")
    from ragbed.experiments.guests.serving.app import serve as run
    from ragbed.experiments.guests.serving.size_limits import SizeLimits

    given: dict[str, Any] = given_settings(model=model, reasoning=reasoning, retrieval=retrieval, retriever=retriever,
                                           where=where, k=k)
    run(target, given, host=host, port=port, url=url, traffic=traffic, threads=threads, citations=citations,
        explore=explore, sizes=SizeLimits(max_question), keys=keys, names=names or (), rate=rate,
        limits={"concurrency": concurrency, "queue": queue, "seconds": timeout}, mcp=mcp)
