"""Every error that ragbed raises on purpose.

RagbedError
├── UserError           what a user can mend: one line on stderr, exit status 2
│   ├── SettingsError   a settings file, option or name that does not fit
│   ├── DocumentError   a source that cannot be read: names it and why
│   ├── IndexFolderError  an index folder that is missing, damaged or of another embedder
│   ├── ModelError      a model that is unknown, absent, of a wrong hash, or refuses the key
│   ├── BenchmarkError  a record of a file that does not fit: file, line, field, expected
│   ├── RunError        a run folder that cannot be continued or read
│   ├── RecipeMismatch  a saved question cannot go on: its recipe asks for something other than what was recorded
│   ├── BudgetSpent     a run's budget is spent: it stopped, and a larger one continues it
│   └── MissingExtra    an optional package is absent: names the extra
├── CallError           one model call failed for good, after its retries
│   ├── CallTimeout     the call's or the question's deadline passed
│   ├── CallTooLong     the prompt does not fit the model's context
│   └── ReplayMiss      a replay was asked for a call that the journal does not hold
├── RecipeFailed        a strategy that is none of ragbed's raised something, or broke the protocol of recipes
└── ScriptEnded         a scripted model was called once more than its script has lines
"""
from __future__ import annotations

from importlib.util import find_spec


class RagbedError(Exception):
    """Root of the tree; never raised itself."""


class UserError(RagbedError):
    """Something that the user can mend. Its text is one line that says what to do."""


class SettingsError(UserError):
    """A settings file, option or name does not fit."""


class DocumentError(UserError):
    """A source cannot be read: its path or name, and why, in a few words."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason


class IndexFolderError(UserError):
    """An index folder is missing, damaged, or was made by another embedder."""


class ModelError(UserError):
    """A model is unknown, absent, has a wrong hash, or its server refuses the key."""


class BenchmarkError(UserError):
    """A record of a file, such as a benchmark's, does not fit its format."""


class RunError(UserError):
    """A run folder cannot be continued or read."""


class RecipeMismatch(UserError):
    """A replayed recipe asked for something other than what was recorded."""


class BudgetSpent(UserError):
    """The budget of a run is spent. What was made is kept."""


class MissingExtra(UserError):
    """An optional package is absent: what could not be imported, and the extra of the distribution that brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'ragbed[{extra}]'")

    @classmethod
    def check(cls, extra: str, *packages: str) -> None:
        """Raise it for the first of the packages that is not installed."""
        for package in packages:
            if find_spec(package) is None:
                raise cls(package, extra)


class CallError(RagbedError):
    """One model call failed for good: one line, free of secrets; a short `kind` that tables count, such as `http_500`,
    `connection` or `bad_json`; and how often the call was sent."""

    def __init__(self, message: str, kind: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts


class CallTimeout(CallError):
    """A deadline passed."""


class CallTooLong(CallError):
    """The prompt does not fit the model's context."""


class ReplayMiss(CallError):
    """The journal does not hold the call that a replay asked for."""


class RecipeFailed(RagbedError):
    """A strategy that is none of ragbed's raised something, or broke the protocol; its text is one line."""


class ScriptEnded(RagbedError):
    """A scripted model was called once more than its script has lines."""
