"""Run `ragbed gate` in a GitHub workflow; see action.yml.

On a pull request, it compares the branch with the main branch, adds the verdict to the job's summary, and keeps one
comment up to date. On other events, it runs the experiment, so that later pull requests have a base. Pull requests from
forks and from Dependabot have no secrets and a token that cannot write: nothing is asked, and the verdict is only in
the summary.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

MARKER = "<!-- ragbed-gate -->"
PAGES = 30  # of 100 comments


def option(name: str) -> str:
    return os.environ.get(f"RAGBED_GATE_{name}", "")


def append(variable: str, text: str) -> None:
    """Append text to the file that GitHub names by a variable."""
    if path := os.environ.get(variable):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def call(method: str, path: str, body: Any = None) -> Any:
    """Call GitHub's API and return its JSON."""
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    request = urllib.request.Request(  # noqa: S310
        f"{api}/repos/{os.environ['GITHUB_REPOSITORY']}{path}", method=method,
        data=None if body is None else json.dumps(body).encode(), headers={
            "Authorization": f"Bearer {option('TOKEN')}", "Accept": "application/vnd.github+json",
            "Content-Type": "application/json", "X-GitHub-Api-Version": "2022-11-28"})
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def put_comment(number: int, text: str) -> None:
    """Write the comment of a pull request, or replace the one that an earlier run wrote."""
    for page in range(1, PAGES + 1):
        comments = call("GET", f"/issues/{number}/comments?per_page=100&page={page}")
        for one in comments:
            if str(one.get("body", "")).startswith(MARKER) and (one.get("user") or {}).get("type") == "Bot":
                call("PATCH", f"/issues/comments/{one['id']}", {"body": text})
                return
        if len(comments) < 100:
            break
    call("POST", f"/issues/{number}/comments", {"body": text})


def gate(pull_request: dict[str, Any]) -> int:
    """Compare a pull request with the main branch and return the exit status of `ragbed gate`."""
    head, base = ((pull_request[side].get("repo") or {}).get("full_name") for side in ("head", "base"))
    bot = pull_request["user"]["login"] == "dependabot[bot]"
    text = Path(os.environ.get("RUNNER_TEMP", ".")) / "ragbed-gate.md"
    text.unlink(missing_ok=True)
    options = [item for name in ("FAIL", "POLICY", "REPORT_URL") if (value := option(name))
               for item in (f"--{name.lower().replace('_', '-')}", value)]
    done = subprocess.run(
        [sys.executable, "-m", "ragbed", "gate", option("BASE"), option("SETTINGS"), "--markdown", str(text), "--json",
         *options, *["--replay-only"] * (head != base or bot)], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    found = json.loads(done.stdout) if done.stdout.strip() else {}
    verdict = text.read_text(encoding="utf-8") if text.exists() else (
        f"{MARKER}\n### ragbed: not compared\n\nThe job's log says why.\n")
    append("GITHUB_OUTPUT", f"verdict={found.get('verdict', 'not_compared')}\nrun={found.get('run', '')}\n")
    append("GITHUB_STEP_SUMMARY", verdict)
    print(verdict)
    if option("COMMENT") == "true":
        try:
            put_comment(pull_request["number"], verdict)
        except (OSError, ValueError) as error:  # a token of a fork cannot write, and the verdict does not depend on it
            print(f"::notice::the comment could not be written ({error}); the verdict is in the job's summary")
    return done.returncode


def main() -> int:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if "pull_request" in event:
        return gate(event["pull_request"])
    if Path(option("BASE")).is_file():
        return 0  # a cassette in the repository
    return subprocess.run([sys.executable, "-m", "ragbed", "run", option("SETTINGS")]).returncode


if __name__ == "__main__":
    sys.exit(main())
