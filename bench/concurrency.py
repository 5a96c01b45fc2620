"""Measure what many questions in flight cost: processor time, time by the clock, and memory, beside LangGraph's loop.

    python bench/concurrency.py [--questions 3000] [--flight 32 256 1024 4096] [--rounds 1] [--servers instant 2s]

The servers answer at once, after 0.2 s, after 2 s with a jitter of 20 %, and after 0.2 s with 5 % of status 429. Each
contestant runs in a fresh process. `ratio` compares a question's processor time to that with the fewest in flight;
`ideal` is the time by the clock if nothing but the server took time. `slowest` is the time that a question of the
slowest tenth takes at least. `ragbed_command` is `ragbed run` with all its processes and start-up. Inspect AI and
promptfoo take part if they are installed (see `overhead.py`).
"""
from __future__ import annotations

import argparse
import math
import os
import statistics

from overhead import child, is_there, server

SERVERS = {"instant": (0.0, 0.0, 0.0), "0.2s": (0.2, 0.0, 0.0), "2s": (2.0, 0.2, 0.0), "429": (0.2, 0.0, 0.05)}
CONTESTANTS = {"langgraph_loop": "direct", "ragbed": "direct", "ragbed, least_to_most": "least_to_most",
               "ragbed_command": "direct", "inspect_ai": "direct", "promptfoo": "direct"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--flight", type=int, nargs="+", default=[32, 256, 1024, 4096])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--servers", nargs="+", default=[*SERVERS], choices=SERVERS)
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS,
                        default=[name for name in CONTESTANTS if is_there(name)])
    options = parser.parse_args()
    print(f"{options.questions} questions, medians of {options.rounds} rounds, {os.cpu_count()} cores")
    print(f"{'server':8} {'contestant':24}{'in flight':>10}{'processor':>12}{'ratio':>7}{'clock':>9}{'ideal':>9}"
          f"{'memory':>10}{'slowest':>9}")
    for kind in options.servers:
        for name in options.contestants:
            if kind == "429" and name == "langgraph_loop":  # it does not retry
                continue
            first = 0.0
            for flight in options.flight:
                taken = []
                for _ in range(options.rounds):
                    with server(*SERVERS[kind]) as url:
                        taken.append(child(name.partition(",")[0], url, options.questions, flight, CONTESTANTS[name]))
                middle = {field: statistics.median(one[field] for one in taken) for field in taken[0]}
                cost = 1000 * middle["processor"] / options.questions
                first = first or cost
                ideal = SERVERS[kind][0] * math.ceil(options.questions / flight)
                memory = middle["memory"] - middle["before"]
                print(f"{kind:8} {name:24}{flight:>10}{cost:>9.2f} ms{cost / first:>7.2f}{middle['clock']:>7.1f} s"
                      f"{ideal:>7.1f} s{memory:>7.0f} MB{middle['slowest']:>7.2f} s", flush=True)


if __name__ == "__main__":
    main()
