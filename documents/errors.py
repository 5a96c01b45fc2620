"""Every error that ragbed raises on purpose.

RagbedError
├── UserError           the user can fix it: one line on stderr, exit status 2
│   ├── SettingsError   a settings file, option or name is not valid
│   ├── DocumentError   a source cannot be read: its name and the reason
│   ├── IndexFolderError  an index folder is missing, damaged or made with another embedder
│   ├── ModelError      a model is unknown, absent, has a wrong hash, or its server refuses the key
│   │   └── TextRefused an embedder's server refuses a text or a batch of texts
│   ├── BenchmarkError  a record of a file is not valid: file, line, field, what was expected
│   ├── RunError        a run folder cannot be continued or read
│   ├── RecipeMismatch  a saved question cannot be resumed: its recipe now makes other requests
│   ├── BudgetSpent     a run's budget is spent; a larger budget continues the run
│   └── MissingExtra    an optional package is not installed: names the extra
├── CallError           a model call failed, and retries did not help
│   ├── CallTimeout     the deadline of the call or the question passed
│   ├── CallTooLong     the prompt does not fit the model's context
│   └── ReplayMiss      a replay needs a call that is not in the journal
├── RecipeFailed        a user's strategy or judge raised an error or broke its protocol
└── ScriptEnded         a scripted model was called more often than its script has lines
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'NAME'? ` for the known name that is most like a misspelt one; empty if none is like it."""
    from difflib import get_close_matches

    folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), folded, 1)
    return f"did you mean {folded[near[0]]!r}? " if near else ""


class RagbedError(Exception):
    """Base class of every error in the tree; never raised directly."""


class UserError(RagbedError):
    """An error that the user can fix. Its message is one line that says what to do."""


class SettingsError(UserError):
    """A settings file, option or name is not valid."""


class DocumentError(UserError):
    """A source cannot be read. The message has its name and a short reason."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason


class IndexFolderError(UserError):
    """An index folder is missing, damaged, or was made with another embedder."""


class ModelError(UserError):
    """A model is unknown, absent, has a wrong hash, or its server refuses the key."""


class TextRefused(ModelError):
    """An embedder's server refuses a request. `text`: the refused text, or a part of it; empty if several were sent."""

    def __init__(self, message: str, text: str = "", too_long: bool = False) -> None:
        super().__init__(message)
        self.text = text
        self.too_long = too_long


class BenchmarkError(UserError):
    """A record of a file, such as a benchmark's, is not valid."""


class RunError(UserError):
    """A run folder cannot be continued or read."""


class RecipeMismatch(UserError):
    """A replayed recipe made a request that differs from the recorded one."""


class BudgetSpent(UserError):
    """The budget of a run is spent. Finished answers are kept."""


class MissingExtra(UserError):
    """An optional package is not installed. The message names the extra that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'ragbed[{extra}]'")

    @classmethod
    def check(cls, extra: str, *packages: str) -> None:
        """Raise the error for the first package that is not installed."""
        for package in packages:
            if find_spec(package) is None:
                raise cls(package, extra)


class CallError(RagbedError):
    """A model call failed, and retries did not help.

    Attributes:
        kind: short name of the failure for tables, such as `http_500`, `connection` or `bad_json`.
        attempts: number of requests sent.
        called: calls of ragbed's tools that a pipeline made before it failed: each tool and its arguments.
    """

    called: Sequence[tuple[str, Mapping[str, Any]]] = ()

    def __init__(self, message: str, kind: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts


class CallTimeout(CallError):
    """A deadline passed."""


class CallTooLong(CallError):
    """The prompt does not fit the model's context."""


class ReplayMiss(CallError):
    """A replay needs a call that is not in the journal."""


class RecipeFailed(RagbedError):
    """A user's strategy or judge raised an error or broke its protocol. The message is one line."""


class ScriptEnded(RagbedError):
    """A scripted model was called more often than its script has lines."""
