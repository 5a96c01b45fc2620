"""The command line as tests call it."""
import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest


def run_command(monkeypatch: pytest.MonkeyPatch, *args: object) -> int:
    """Run the command `ragbed` in this process; its exit status."""
    from ragbed.experiments.cli import main

    monkeypatch.setattr(sys, "argv", ["ragbed", *map(str, args)])
    with _without_running_loop():
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


@contextlib.contextmanager
def _without_running_loop() -> Iterator[None]:
    """Hide the event loop that Playwright marks as running for as long as a browser is open: commands start their
    own."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


class CommandLine:
    """The command `ragbed` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *args: object) -> tuple[int, str, str]:
        """Exit status, stdout and stderr."""
        self._capsys.readouterr()
        return run_command(self._monkeypatch, *args), *self._capsys.readouterr()

    def json(self, *args: object) -> Any:
        """What the command says with `--json`, where it ends with status 0."""
        status, out, err = self(*args, "--json")
        assert status == 0, err
        return json.loads(out)

    def refuses(self, *args: object, says: Sequence[str]) -> None:
        """The command ends with status 2 and one line on stderr, progress apart, that holds these words."""
        status, out, err = self(*args)
        assert (status, out) == (2, ""), err
        *progress, line = err.splitlines()
        assert all(told.startswith('{"stage": ') for told in progress), err
        assert line.startswith("ragbed: ")
        assert [word for word in says if word not in line] == [], err
