"""`ragbed new`."""
from __future__ import annotations

from typing import Annotated

import typer


def strategy(name: Annotated[str, typer.Argument(help="Of the file, and of the strategy in tables: letters, digits "
                                                      "and _.")],
             retrieval: Annotated[bool, typer.Option("--retrieval", help="A retrieval strategy, in the place of a "
                                                                         "reasoning strategy.")] = False) -> None:
    """Write a strategy of your own to begin with, and its test, into the current folder."""
    from experiments.terminal.display import say
    from experiments.terminal.lists import write_strategy

    family = "retrieval" if retrieval else "reasoning"
    write_strategy(name, family)
    say(f"{name}.py and test_{name}.py are written. Next:")
    say(f"  ragbed check strategy {name}.py:recipe")
    say(f"  ragbed run demo --limit 5 --name {name} --{family} {name}.py:recipe"
        f"{' --condition retrieved' if retrieval else ' --reasoning direct'}")
    say(f"  ragbed report runs/{name}")
