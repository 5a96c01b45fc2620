"""Output of user code: where it goes, and what is restored afterwards."""
import io
import sys

from ragbed.documents.errors import SettingsError
from ragbed.documents.user_code import UserCode


def test_a_stdout_that_was_closed_meanwhile_is_not_restored(monkeypatch):
    closed = io.StringIO()
    monkeypatch.setattr(sys, "stdout", closed)
    guard = UserCode(SettingsError)
    guard.__enter__()
    monkeypatch.setattr(sys, "stdout", now := io.StringIO())
    closed.close()
    guard.__exit__(None, None, None)
    assert sys.stdout is now
