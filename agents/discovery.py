"""Choose a default model: OpenAI's if there is a key, a model of a server on this machine, or the small local model."""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ragbed.agents.model_settings import DEFAULT_MODEL
from ragbed.documents.json import loads

MODEL_VARIABLE = "RAGBED_MODEL"  # names the default model
OPENAI = "openai:gpt-4o-mini"
PORTS = (11434, 1234, 8080, 8000)  # default ports of Ollama, LM Studio, llama.cpp and vLLM
_OWNERS = {"library": "Ollama", "organization_owner": "LM Studio", "llamacpp": "llama.cpp", "vllm": "vLLM"}
_NAME = re.compile(r"[\w./\\][\w ./\\:@+,()-]{0,199}")  # names of this form are safe to show and record
_NO_CHAT = re.compile(r"embed|rerank|minilm|paraphrase|\b(bge|gte|e5|whisper|tts|ocr)\b", re.IGNORECASE)
_CONNECT, _SECONDS = 0.3, 1.0  # timeouts of a server on this machine
_BLOCK, _BLOCKS = 1 << 16, 16  # maximum bytes of a list of models


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """A server on this machine that has a chat model."""

    server: str  # name of the program, or its port if unknown
    url: str
    models: tuple[str, ...]  # chat models, in the server's order

    def __str__(self) -> str:
        more = f" and {len(self.models) - 1} more" if len(self.models) > 1 else ""
        return f"{self.server} ({self.models[0]}{more})"


def default_model(note: Callable[[str], None]) -> str:
    """Return the default model.

    Tried in order: `RAGBED_MODEL`; `openai:gpt-4o-mini` if `OPENAI_API_KEY` is set; the first chat model of Ollama, LM
    Studio, llama.cpp or vLLM on this machine; the small local model. Unless `RAGBED_MODEL` is set, `note` is called
    with a line that names the choice and the reason."""
    if named := os.environ.get(MODEL_VARIABLE, "").strip():
        return named
    if os.environ.get("OPENAI_API_KEY", "").strip():
        seen, chosen = "OPENAI_API_KEY is set", OPENAI
    elif found := find_servers():
        seen, chosen = f"this machine has {', '.join(map(str, found))}", f"{found[0].url}#{found[0].models[0]}"
    else:
        seen, chosen = "OPENAI_API_KEY is not set, and no model server answers on this machine", DEFAULT_MODEL
    note(f"no --model is given; {seen}. Using {chosen}; choose another with --model NAME, or permanently "
         f"with {MODEL_VARIABLE}=NAME")
    return chosen


def find_servers() -> list[LocalEndpoint]:
    """Return the servers on this machine that have a chat model, in the order of `PORTS`."""
    with ThreadPoolExecutor(len(PORTS)) as pool:
        return [one for one in pool.map(_find_server, PORTS) if one is not None]


def _find_server(port: int) -> LocalEndpoint | None:
    url = f"http://127.0.0.1:{port}/v1"
    listed = [one for one in _list_models(f"{url}/models") if isinstance(one, dict)]
    names = [one["id"] for one in listed if isinstance(one.get("id"), str)]
    models = tuple(name for name in names if _NAME.fullmatch(name) and not _NO_CHAT.search(name))
    owners = [_OWNERS[owner] for one in listed if (owner := str(one.get("owned_by"))) in _OWNERS]
    return LocalEndpoint(owners[0] if owners else f"a server on port {port}", url, models) if models else None


def _list_models(url: str) -> list[Any]:
    """Return the models that a server lists at `/v1/models`; empty if it does not speak OpenAI's protocol."""
    import httpx2

    try:
        with httpx2.Client(timeout=httpx2.Timeout(_SECONDS, connect=_CONNECT), trust_env=False) as client, \
                client.stream("GET", url) as answer:
            body = b"".join(islice(answer.iter_bytes(_BLOCK), _BLOCKS)) if answer.status_code == 200 else b""
        data = loads(body).get("data")
    except (httpx2.HTTPError, ValueError, AttributeError):
        return []
    return data if isinstance(data, list) else []
