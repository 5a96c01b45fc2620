"""Dockerfile and compose.yaml, without Docker: their commands run here, from the files that would enter the image."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pytest
import yaml
from patience import SECONDS, until
from postgres_server import postgres_server
from serving import PAGES

from ragbed.agents.database import Database
from ragbed.documents.errors import RunError
from ragbed.experiments.guests.traffic.traffic import SCHEMA, VERSION, Traffic

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
KEY = "ann-key-0123456789"
QUESTION = "Which country is Oslo the capital of?"
ASKED = {"model": "chain_of_thought", "messages": [{"role": "user", "content": QUESTION}]}


def instruction(name):
    """The last instruction of this name in the Dockerfile, as JSON."""
    return json.loads(re.findall(rf"^\s*{name} (\[.*\])$", DOCKERFILE, re.MULTILINE)[-1])


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """What `.dockerignore` lets into the image, which the build copies."""
    folder = tmp_path_factory.mktemp("context")
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name in allowed:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def environment(context, **given):
    """The environment in the container: the image's own, and what is given."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(context), "PYTHONDONTWRITEBYTECODE": "1", **given}


def command(parts, places):
    """A command of the image, with places on this machine."""
    found = [re.sub("|".join(places), lambda one: places[one[0]], part) for part in parts]
    return [sys.executable, "-m", "ragbed", *found[1:]] if found[0] == "ragbed" else [sys.executable, *found[1:]]


@contextlib.contextmanager
def running(parts, env, folder):
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(parts, env=env, stdout=log, stderr=log, cwd=folder)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def healthy(health, env):
    return subprocess.run(health, env=env, stderr=subprocess.DEVNULL).returncode == 0


def until_healthy(health, env, server, folder):
    until(lambda: server.poll() is not None or healthy(health, env))
    assert server.poll() is None, (folder / "log").read_text()


@pytest.mark.slow
def test_the_image_indexes_serves_is_healthy_and_stops(context, serve, tmp_path):
    for name in ("documents", "data", "home"):
        (tmp_path / name).mkdir()
    for name, text in PAGES.items():
        (tmp_path / "documents" / name).write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = environment(context, HOME=str(tmp_path / "home"), RAGBED_CACHE=str(tmp_path / "home" / "ragbed"),
                      RAGBED_KEYS=f"ann {KEY}")
    places = {"/index/current": str(tmp_path / "index"), "/index": str(tmp_path / "index"), "8700": str(port),
              "/documents": str(tmp_path / "documents"), "/data": str(tmp_path / "data")}
    entry = instruction("ENTRYPOINT")
    indexing = command([*entry, *COMPOSE["services"]["index"]["command"]], places)
    subprocess.run(indexing, env=env, check=True, cwd=tmp_path, capture_output=True)
    before = {*context.rglob("*")}
    parts = [*command([*entry, *instruction("CMD")], places), "--port", str(port), "--model",
             f"{serve(lambda body: '<Answer>Norway [1]</Answer>').url}#m"]
    health = command(json.loads(re.search(r"HEALTHCHECK[^[]*(\[.*\])", DOCKERFILE)[1]), places)

    assert not healthy(health, env)
    with running(parts, env, tmp_path) as server:
        until_healthy(health, env, server, tmp_path)
        answer = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=ASKED, timeout=SECONDS,
                            headers={"Authorization": f"Bearer {KEY}"})
        assert answer.json()["choices"][0]["message"]["content"] == "Norway [1]"
        server.send_signal(signal.SIGTERM)
        assert server.wait(SECONDS) == 0
    assert json.loads((tmp_path / "log").read_text().strip().split("\n")[-1])["outcome"] == "answered"
    assert {*context.rglob("*")} == before  # the root file system can be read-only
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"documents", "data", "home", "index", "log"}


@pytest.mark.slow
def test_the_services_of_compose_work_together(context, serve, tmp_path):
    for name in ("documents", "home"):
        (tmp_path / name).mkdir()
    for name, text in PAGES.items():
        (tmp_path / "documents" / name).write_text(text)
    service = COMPOSE["services"]["ragbed"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    model = f"{serve(lambda body: '<Answer>Norway [1]</Answer>').url}#m"
    with postgres_server() as (url, _):
        place = re.search(r"@(127\.0\.0\.1:\d+)/", url)[1]
        places = {"/index/current": str(tmp_path / "index"), "postgres/ragbed": f"{place}/postgres", "8700": str(port),
                  "/documents": str(tmp_path / "documents")}
        wanted = [re.sub(r"\$\{RAGBED_MODEL:-[^}]*\}", model, part) for part in service["command"]]
        env = environment(context, HOME=str(tmp_path / "home"), RAGBED_KEYS=f"ann {KEY}", PGPASSWORD="bell-and-lamp")
        assert set(service["environment"]) == {"RAGBED_KEYS", "PGPASSWORD", "OPENAI_API_KEY"}
        subprocess.run(command(["ragbed", *COMPOSE["services"]["index"]["command"]], places), env=env, check=True,
                       cwd=tmp_path, capture_output=True)
        parts = [*command(["ragbed", *wanted], places), "--port", str(port)]
        health = command(service["healthcheck"]["test"][1:], places)

        with running(parts, env, tmp_path) as server:
            until_healthy(health, env, server, tmp_path)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS, headers={
                    "Authorization": f"Bearer {KEY}"}) as client:
                assert client.post("/v1/chat/completions", json=ASKED).json()["ragbed"]["outcome"] == "answered"
                assert set(client.get("/ready").json().values()) == {"ready", "ok"}
            server.send_signal(signal.SIGTERM)
            assert server.wait(SECONDS) == 0


def test_the_image_has_no_secrets_and_no_root():
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    assert not re.search(r"^(?:ENV|ARG)[^\n]*(?:KEY|PASSWORD|TOKEN|SECRET)", DOCKERFILE, re.MULTILINE)
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"  # what is not named stays out, such as .env
    for name in ("ragbed", "index"):
        one = COMPOSE["services"][name]
        assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
        assert "no-new-privileges:true" in one["security_opt"]
    assert COMPOSE["services"]["ragbed"]["ports"] == ["127.0.0.1:8700:8700"]
    assert all("${" in str(value) for value in COMPOSE["services"]["ragbed"]["environment"].values())


async def test_an_older_data_folder_is_migrated_or_refused_in_a_line(tmp_path):
    tables = [one for one in SCHEMA if not re.search("spending|titles|running", one)]  # before these were added
    with contextlib.closing(Database(tmp_path / "traffic.sqlite", tables, VERSION)):
        pass
    async with Traffic.open(tmp_path, ["direct"]) as traffic:
        await traffic.check({})  # writes to a table that was added
    for version in (VERSION - 1, VERSION + 1):
        folder = tmp_path / str(version)
        folder.mkdir()
        with contextlib.closing(Database(folder / "traffic.sqlite", tables, version)):
            pass
        with pytest.raises(RunError, match=f"another version of ragbed \\(format {version}, not {VERSION}\\)") as error:
            async with Traffic.open(folder, ["direct"]):
                pass
        assert "--traffic" in str(error.value)
        assert "\n" not in str(error.value)
