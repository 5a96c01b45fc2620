"""The action's script, against a GitHub API on loopback."""
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from gated import Branches, digit, reply_with

ROOT = Path(__file__).parents[3]


class GitHub:
    """Comments of one pull request, and what was sent."""

    def __init__(self):
        self.comments, self.sent, self.may_write = [], [], True
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                hub.sent.append((self.command, self.path, self.headers["Authorization"]))
                allowed = hub.may_write or self.command == "GET"
                content = json.dumps(hub.handle(self.command, self.path, body) if allowed else {}).encode()
                self.send_response(200 if allowed else 403)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def handle(self, method, path, body):
        if method == "GET":
            page = int(re.search(r"&page=(\d+)", path)[1])
            return self.comments[100 * (page - 1):100 * page]
        text = json.loads(body)["body"]
        if method == "POST":
            self.comments.append({"id": len(self.comments) + 1, "body": text, "user": {"type": "Bot"}})
        else:
            next(one for one in self.comments if path.endswith(f"/issues/comments/{one['id']}"))["body"] = text
        return {}


@pytest.fixture
def github():
    hub = GitHub()
    yield hub
    hub.server.shutdown()
    hub.server.server_close()
    hub.thread.join()


def run_action(folder, github, settings, event, **inputs):
    (folder / "event.json").write_text(json.dumps(event))
    for name in ("summary", "output"):
        (folder / name).write_text("")
    given = {"SETTINGS": str(settings), "BASE": str(folder / "runs" / "numbers"), "COMMENT": "true", "TOKEN": "secret",
             **inputs}
    done = subprocess.run([sys.executable, ROOT / ".github" / "gate.py"], capture_output=True, text=True, env={
        **os.environ, **{f"RAGBED_GATE_{name}": value for name, value in given.items()},
        "GITHUB_API_URL": github.url, "GITHUB_REPOSITORY": "me/shop", "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"), "GITHUB_OUTPUT": str(folder / "output"),
        "RUNNER_TEMP": str(folder)})
    return done.returncode, done.stdout, done.stderr


def pull_request(head="me/shop"):
    return {"pull_request": {"number": 7, "user": {"login": "ada"}, "head": {"repo": {"full_name": head}},
                             "base": {"repo": {"full_name": "me/shop"}}}}


@pytest.mark.slow
def test_the_action_keeps_one_comment_and_asks_nothing_for_forks(tmp_path, ragbed, serve, github):
    server = serve(reply_with(lambda text, number: digit(number) < (8 if "Think" in text else 2)))
    branches = Branches(tmp_path, ragbed, server, questions=40)
    changed = branches.write(reasoning="chain_of_thought")
    status, _, err = run_action(tmp_path, github, branches.write("main.yaml"), {"ref": "refs/heads/main"})
    assert (status, len(server.requests), github.sent) == (0, 40, []), err

    people = [{"id": 900 + place, "body": "<!-- ragbed-gate --> me too", "user": {"type": "User"}}
              for place in range(120)]
    github.comments = list(people)
    status, out, err = run_action(tmp_path, github, changed, pull_request())
    asked = len(server.requests)
    assert (status, 40 < asked < 80) == (1, True), err
    assert github.comments[120]["body"] == (tmp_path / "summary").read_text()
    assert "### ragbed: worse" in github.comments[120]["body"]
    assert (tmp_path / "output").read_text().startswith("verdict=worse\nrun=")
    assert [method for method, _, _ in github.sent] == ["GET", "GET", "POST"]
    assert github.sent[0] == ("GET", "/repos/me/shop/issues/7/comments?per_page=100&page=1", "Bearer secret")

    status, out, err = run_action(tmp_path, github, branches.write("main.yaml"), pull_request(), FAIL="not_equal")
    assert (status, len(github.comments), len(server.requests)) == (0, 121, asked), err
    assert "### ragbed: unchanged" in github.comments[120]["body"]
    assert github.comments[:120] == people
    assert "secret" not in out + err

    github.may_write = False
    status, out, _ = run_action(tmp_path, github, branches.write(reasoning="plan_and_solve"), pull_request("eve/shop"))
    assert (status, len(server.requests)) == (0, asked)
    assert "40 of 40 questions need calls that BASE did not make" in (tmp_path / "summary").read_text()
    assert "::notice::the comment could not be written" in out
    status, _, err = run_action(tmp_path, github, tmp_path / "none.yaml", pull_request(), COMMENT="false")
    assert status == 2
    assert "### ragbed: not compared" in (tmp_path / "summary").read_text()


def test_the_action_gives_inputs_to_shells_by_the_environment_only():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    used = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text()))
    assert used == action["inputs"].keys()
