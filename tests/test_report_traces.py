"""The report's traces: decisions and tool calls are shown, as text and nothing else."""
from chromium import opened
from report_runs import Run

from ragbed.experiments import StoredMessage, StoredStep
from ragbed.strategies import Failure, Usage

HOSTILE = "</script><img src=x onerror=\"document.title='PWNED'\">\u202e"
CALL = {"id": f"id {HOSTILE}", "type": "function",
        "function": {"name": HOSTILE, "arguments": f'{{"query": "{HOSTILE}"}}'}}


def written(folder):
    """A report of one answer that called a tool, was told what came of it, and decided."""
    run = Run("a")
    run.ask("q", "Who?")
    passage = run.passage(1, "A document that is long enough to be worth a reference of its own. " * 3)
    talk = (StoredMessage(role="user", parts=(run.put("Find out."),)),
            StoredMessage(role="assistant", parts=(), tool_calls=(CALL,)),
            StoredMessage(role="tool", parts=(run.put(run.prompt(passage)),), call_id=f"id {HOSTILE}"))
    step = StoredStep(kind="generate", purpose="react", messages=talk, text="", finish_reason="tool_calls",
                      usage=Usage(7, 3, 0, 1), tool_calls=(CALL, {"function": "odd"}))
    decided = StoredStep(kind="decision", purpose=f"stops {HOSTILE}", text=f"nothing new {HOSTILE}")
    failed = StoredStep(kind="search", query="x", failure=Failure("timeout", "late"))
    run.answer("a", "q", "Ada [1]", 1.0, [passage], trace=(step, decided, failed))
    return run.write(folder)


def test_decisions_and_tool_calls_are_read_as_text(visit, tmp_path):
    page = visit(written(tmp_path).as_uri())
    row = opened(page, 1)
    row.locator(".trace > summary").click()
    row.locator(".steps").wait_for()
    first, decided, failed = row.locator(".steps > .step").all_inner_texts()
    assert 'calls </script><img src=x onerror="document.title=\'PWNED\'">⟨U+202E⟩ {"query"' in first
    assert "answers id </script>" in first
    assert "tool calls" in first
    assert decided.startswith("decision stops </script>")
    assert "nothing new </script>" in decided
    assert "late" in failed
    assert row.locator(".steps img").count() == 0
    assert row.locator(".step .part summary").all_inner_texts() == ["1 passage, 219 characters"]
