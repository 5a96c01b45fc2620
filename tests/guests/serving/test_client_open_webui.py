"""Open WebUI, from its package, started headless: the models that it lists, and a chat whose answer shows its passages.

Its pins clash with ours, so it has an environment of its own: RAGBED_OPEN_WEBUI names its command `open-webui`."""
import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
from uuid import uuid4

import httpx2 as httpx
import pytest
from patience import SECONDS, until
from streamed import as_asked

COMMAND = os.environ.get("RAGBED_OPEN_WEBUI") or shutil.which("open-webui")
QUESTION = "Which country is Oslo the capital of?"
REPLY = "It is Norway [1]."
TASKS = dict.fromkeys(("title_generation", "tags_generation", "follow_up_generation"), True)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not COMMAND, reason="no Open WebUI: pip install open-webui in an environment of its own, and name its command in "
                        "RAGBED_OPEN_WEBUI")]


def says(body):
    """A model that answers, and writes the titles and tags that it is asked for as JSON."""
    last = body["messages"][-1]["content"]
    return '{"title": "Capitals", "tags": ["Travel"], "follow_ups": []}' if "### Task:" in last else REPLY


@contextlib.contextmanager
def open_webui(url, folder):
    """A client of a fresh Open WebUI whose models are those of this address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"DATA_DIR": str(folder), "OPENAI_API_BASE_URLS": url, "OPENAI_API_KEYS": "none",
                "WEBUI_SECRET_KEY": "test", "ENABLE_OLLAMA_API": "false", "RAG_EMBEDDING_ENGINE": "openai",
                "OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "ANONYMIZED_TELEMETRY": "false"}
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([COMMAND, "serve", "--host", "127.0.0.1", "--port", str(port)], cwd=folder,
                                   env={**os.environ, **settings}, stdout=log, stderr=log)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as client:
                until(lambda: process.poll() is not None or healthy(client))
                assert process.poll() is None, (folder / "log").read_text()[-2000:]
                yield client
        finally:
            process.terminate()
            process.wait(SECONDS)


def healthy(client):
    with contextlib.suppress(httpx.TransportError):
        return client.get("/health").is_success


def test_a_chat_shows_the_passages_and_titles_cost_no_search(answering, tmp_path):
    url, _ = answering(as_asked(says))
    (tmp_path / "webui").mkdir()
    with open_webui(f"{url}/openwebui/v1", tmp_path / "webui") as client:
        person = client.post("/api/v1/auths/signup", json={
            "name": "Ann", "email": "ann@example.org", "password": "a long password"}).raise_for_status().json()
        client.headers["Authorization"] = f"Bearer {person['token']}"
        (served,) = client.get("/api/models").raise_for_status().json()["data"]
        assert served["id"] == "direct"
        asked = client.post("/api/chat/completions", json={
            "model": "direct", "stream": True, "parent_id": None, "id": str(uuid4()), "session_id": str(uuid4()),
            "user_message": {"id": str(uuid4()), "role": "user", "content": QUESTION},
            "messages": [{"role": "user", "content": QUESTION}], "background_tasks": TASKS}).raise_for_status().json()

        def told():
            chat = client.get(f"/api/v1/chats/{asked['chat_id']}").raise_for_status().json()
            answers = [one for one in chat["chat"]["history"]["messages"].values() if one["role"] == "assistant"]
            return chat if answers and answers[0].get("done") and chat["title"] == "Capitals" else None

        chat = until(told)
    (answer,) = [one for one in chat["chat"]["history"]["messages"].values() if one["role"] == "assistant"]
    assert answer["content"] == REPLY
    (source,) = answer["sources"]
    assert source["source"]["name"] == "oslo.txt"
    assert source["source"]["url"].startswith(f"{url}/documents/")
    assert source["document"] == ["Oslo is the capital of Norway."]
    with contextlib.closing(sqlite3.connect(tmp_path / "traffic" / "traffic.sqlite")) as connection:
        assert connection.execute("SELECT question FROM turns").fetchall() == [(QUESTION,)]
