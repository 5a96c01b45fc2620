"""`ragbed serve` and `ragbed questions`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ragbed.experiments.commands.options import AsJson, Conditions

Target = Annotated[Path, typer.Argument(metavar="TARGET", help=(
    "A finished run, or a file of settings, whose cells are served; or an index, and then --model and the options "
    "beside it say what answers."))]

Explored = Annotated[float, typer.Option(min=0, max=1, help=(
    "The share of threads that another than the first configuration answers, drawn at random; `ragbed compare` of the "
    "traffic tests the difference."))]


def serve(
        target: Target,
        model: Annotated[str | None, typer.Option(help="Over an index: the model, named as for `ragbed ask`.")] = None,
        reasoning: Annotated[str | None, typer.Option(help="Over an index, as for `ragbed ask`.")] = None,
        retrieval: Annotated[str | None, typer.Option(help="Likewise.")] = None,
        retriever: Annotated[str | None, typer.Option(help="Likewise.")] = None,
        where: Conditions = None,
        k: Annotated[int | None, typer.Option("-k", min=1, help="Likewise: chunks per search.")] = None,
        host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine it needs keys.")
                        ] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8700,
        url: Annotated[str, typer.Option("--url", help="Where clients reach the server, for links to documents; by "
                                         "default as each request has it.")] = "",
        traffic: Annotated[Path, typer.Option("--traffic", metavar="DIR", help=(
            "Folder of what is asked and answered, and of feedback."))] = Path("traffic"),
        threads: Annotated[str | None, typer.Option("--threads", metavar="PLACE", help=(
            "Where conversations are kept: a file, or postgresql://...; by default a file in the traffic's folder."))]
        = None,
        citations: Annotated[str, typer.Option(help="How answers name sources where the client does not say: "
                                               "annotations, markdown or both.")] = "annotations",
        explore: Explored = 0.0,
        keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help=(
            "Who may ask: lines of a name and a key, or of a name and sha256:HASH. Else RAGBED_KEYS has them."))]
        = None,
        names: Annotated[list[str] | None, typer.Option("--name", metavar="HOST", help=(
            "A further name by which clients reach the server, as in a network of containers; repeatable."))] = None,
        rate: Annotated[str, typer.Option(help="Questions of each key: a number per second, minute, hour or day.")
                        ] = "60/minute",
        concurrency: Annotated[int, typer.Option(min=1, help="Answers under way at once.")] = 64,
        queue: Annotated[int, typer.Option(min=0, help="Requests that wait; the next is told to come later.")] = 64,
        timeout: Annotated[float, typer.Option(min=1, help="Seconds that a request may take.")] = 900,
        mcp: Annotated[bool, typer.Option("--mcp", help="Serve the tools search, ask and open of the Model Context "
                                          "Protocol over stdin and stdout, and nothing else.")] = False) -> None:
    """Serve measured configurations: OpenAI's API, and a page to ask, look sources up and say what is wrong.

    Clients take http://127.0.0.1:8700/v1 as the base URL, and the name of a configuration as the model; those of the
    Model Context Protocol take http://127.0.0.1:8700/mcp. All that is asked is kept in --traffic, which `ragbed show`,
    `diagnose` and `report` open as they open a run.
    """
    from ragbed.experiments.commands.ask import given_settings
    from ragbed.experiments.guests.serving.listen import serve as run

    given: dict[str, Any] = given_settings(model=model, reasoning=reasoning, retrieval=retrieval, retriever=retriever,
                                           where=where, k=k)
    run(target, given, host=host, port=port, url=url, traffic=traffic, threads=threads, citations=citations,
        explore=explore, keys=keys, names=names or (), rate=rate,
        limits={"concurrency": concurrency, "queue": queue, "seconds": timeout}, mcp=mcp)


def questions(
        source: Annotated[Path, typer.Option("--from", metavar="TRAFFIC", help=(
            "What `ragbed serve --traffic` keeps: the folder, or its traffic.sqlite."))],
        out: Annotated[Path, typer.Option("--out", metavar="FILE", help="JSON Lines; a file there is replaced.")],
        thumb: Annotated[Literal["up", "down", "any"], typer.Option(help=(
            "Only answers with this thumb; by default whatever anybody said anything of."))] = "any",
        json: AsJson = False) -> None:
    """Make questions of what people said of served answers.

    An answer that was approved of is a candidate for the gold answer, and what it cites for the gold evidence; what was
    said stands in the tags. `ragbed review` shows them one at a time, and `ragbed run` tests a fix on exactly these.
    """
    from ragbed.experiments.formatting import plural
    from ragbed.experiments.guests.serving.feedback import questions_of
    from ragbed.experiments.runs.store import write_lines
    from ragbed.experiments.terminal.display import print_result

    lines = questions_of(source, thumb)
    write_lines(out, lines)
    counts = {name: sum(line["tags"].get("feedback") == name for line in lines) for name in ("up", "down")}
    print_result(json, {"from": str(source), "questions": str(out), "n": len(lines), **counts}, (
        f"{out}: {plural(len(lines), 'question')}, {counts['up']} with a thumb up and {counts['down']} with a thumb "
        f"down; `ragbed review {out} --index INDEX` shows them one at a time"))
