"""Embedding through an OpenAI-compatible server: batches, order, retries, refusals, and where the key goes."""
import gzip
import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from each_case import each

from ragbed.documents import CallError, ModelError
from ragbed.retrieval import Server, open_embedder
from ragbed.retrieval.embedders.windows import cut_by_estimate, estimate_tokens

KEY = "sk-of-nobody-12345"


def vector(text):
    return [float(len(text)), 1.0, 0.0]


def usual(body):
    rows = [{"object": "embedding", "index": place, "embedding": vector(text)}
            for place, text in enumerate(body["input"])]
    return 200, {}, {"data": rows[::-1]}


@contextmanager
def serving(script):
    """A server on loopback that answers by a function from the request's body, and keeps what it was sent."""
    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, body, self.headers))
            status, headers, reply = script(body)
            content = reply if isinstance(reply, bytes | list) else json.dumps(reply).encode()
            pieces = content if isinstance(content, list) else [content]
            self.send_response(status)
            for name, value in {"Content-Length": str(sum(map(len, pieces))), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # whoever asked may have gone
                for piece in pieces:
                    self.wfile.write(piece)
                    ended.wait(0.05 * (len(pieces) > 1))

        def log_message(self, *_):
            pass

    seen, ended = [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("ragbed.documents.http._FIRST_DELAY", 0.01)
    monkeypatch.setenv("RAGBED_API_KEY", KEY)


def test_vectors_come_back_beside_their_texts_in_batches():
    with serving(usual) as (url, seen):
        embedder = open_embedder(Server(model=f"{url}#bge", batch=3, dimensions=3))
        texts = ["a" * length for length in range(1, 11)]
        found = embedder.embed_passages(texts)
        np.testing.assert_allclose(found[:, 0] / found[:, 1], range(1, 11), rtol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
        assert sorted(len(body["input"]) for _, body, _ in seen) == [1, 3, 3, 3]
        path, body, headers = seen[0]
        assert (path, body["model"], body["dimensions"]) == ("/v1/embeddings", "bge", 3)
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert embedder.embed_queries([]).shape == (0, 3)
        with pytest.raises(ModelError, match="has 3 numbers, not 8; set dimensions"):
            open_embedder(Server(model=f"{url}#m", dimensions=8)).embed_queries(["rain"])


def test_the_dimension_is_asked_for_where_none_is_set_and_the_familys_prefixes_are_sent():
    with serving(usual) as (url, seen):
        embedder = open_embedder(f"{url}#intfloat/e5-small-v2")
        assert (embedder.dimension, "dimensions" in seen.pop()[1]) == (3, False)
        embedder.embed_queries(["rain"])
        embedder.embed_passages(["rain"])
        assert [body["input"] for _, body, _ in seen] == [["query: rain"], ["passage: rain"]]


def test_a_long_text_is_sent_by_windows_or_cut():
    with serving(usual) as (url, seen):
        text = "word " * 100
        windowed, cut = (open_embedder(Server(model=f"{url}#m", window=64, long=long))
                         for long in ("windows", "truncated"))
        windowed.embed_passages([text])
        cut.embed_passages([text])
        sent, beginning = (body["input"] for _, body, _ in seen)
        assert ("".join(sent), len(sent)) == (text, 5)
        assert beginning == sent[:1]
        assert windowed.identity != cut.identity


@pytest.mark.parametrize("text", ["word " * 500, "서울대학교 " * 90, "1,234.5 | " * 60, "x" * 900, "", "😀" * 70])
def test_windows_by_estimate_cover_the_text(text):
    (spans,) = cut_by_estimate([text], 64, "")
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(estimate_tokens(text[start:end]) <= 60 for start, end in spans)


def test_a_server_that_is_busy_is_asked_again_when_it_says():
    replies = [(429, {"Retry-After": "0.01"}, {"error": {"message": "slow down"}}), (503, {}, b"busy"), None]
    with serving(lambda body: replies.pop(0) or usual(body)) as (url, seen):
        assert open_embedder(f"{url}#m").embed_queries(["rain"]).shape == (1, 3)
        assert len(seen) == 3


def test_a_failure_that_stays_is_a_failed_call_of_so_many_attempts():
    with serving(lambda body: (500, {}, {"error": f"broken, {KEY}"})) as (url, seen):
        with pytest.raises(CallError, match=r"HTTP 500: broken, \[key\], after 2 attempts") as raised:
            open_embedder(Server(model=f"{url}#m", attempts=2)).embed_queries(["rain"])
        assert (raised.value.kind, raised.value.attempts, len(seen)) == ("http_500", 2, 2)
    with pytest.raises(CallError, match="after 1 attempts") as raised:  # nobody is there any more
        open_embedder(Server(model=f"{url}#m", attempts=1)).embed_queries(["rain"])
    assert raised.value.kind == "connection"


def test_a_wait_beyond_the_deadline_is_not_waited():
    with (serving(lambda body: (429, {"Retry-After": "900"}, b"")) as (url, seen),
          pytest.raises(CallError, match="HTTP 429")):
        open_embedder(Server(model=f"{url}#m", seconds=5)).embed_queries(["rain"])
    assert len(seen) == 1


@each(("answer", "says"), [
    ((401, {}, {"error": {"message": f"bad {KEY}"}}), r"refuses the key \(HTTP 401\); set RAGBED_API_KEY .*\[key\]"),
    ((404, {}, {"error": "no such model"}), "no such model; check the model's name"),
    ((400, {}, {"error": {"message": "input is too long"}}), "set window to the tokens"),
    ((500, {}, {"error": {"message": "input (3001 tokens) is too large to process"}}), "set window to the tokens"),
    ((422, {}, {"detail": "no dimensions here"}), "HTTP 422: no dimensions here; check .* the settings"),
    ((302, {"Location": "http://127.0.0.1:1/elsewhere"}, b""), "redirects"),
    ((200, {}, b"<html>"), "the reply has no embeddings"),
    ((200, {}, {"error": {"code": 400, "message": "no such model"}}), "HTTP 400: no such model"),
    ((200, {}, {"data": "x"}), "has no embeddings"),
    ((200, {}, {"data": []}), "1 texts were sent, but 0 embeddings came"),
    ((200, {}, {"data": [{"index": 4, "embedding": [1, 2]}]}), "or some have the same index"),
    ((200, {}, {"data": [{"index": 0, "embedding": ["1.5", 1]}]}), "has no embeddings"),
    ((200, {}, {"data": [{"embedding": [10 ** 400, 1]}]}), "no embeddings|not finite or too large"),
    ((200, {}, {"data": [{"embedding": [1e300, 1]}]}), "not finite or too large"),
    ((200, {}, {"data": [{"embedding": [1e-300, 1e-30]}]}), "all zeros"),
    ((200, {}, b'{"data": [{"index": 0, "embedding": [NaN, 1, 2]}]}'), "not finite or too large"),
])
def test_what_is_no_answer_is_one_line_without_the_key(answer, says):
    with serving(lambda body: answer) as (url, seen), pytest.raises(ModelError, match=says) as raised:
        open_embedder(f"{url}#m").embed_queries(["rain"])
    assert len(seen) == 1
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("answer", "says"), [
    ((200, {}, [b" "] * 100), "ReadTimeout: the reply did not end in time"),
    ((200, {}, b" " * 2_000_000), "the reply is larger than 1 MB"),
    ((200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * 50_000_000, 1)), "the server compressed its reply")])
def test_a_reply_that_trickles_in_or_is_huge_ends_in_time(monkeypatch, answer, says):
    monkeypatch.setattr("ragbed.retrieval.embedders.server._MAX_BYTES", 1 << 20)
    begun = time.monotonic()
    with serving(lambda body: answer) as (url, _), pytest.raises(CallError, match=says):
        open_embedder(Server(model=f"{url}#m", seconds=0.6, attempts=1)).embed_queries(["one"])
    assert time.monotonic() - begun < 4


def test_the_openai_key_goes_to_its_own_address_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-98765")
    with serving(usual) as (url, seen):
        open_embedder(f"{url}#m").embed_queries(["rain"])
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        open_embedder("openai:text-embedding-3-small").embed_queries(["rain"])
        assert [headers["Authorization"] for _, _, headers in seen] == [f"Bearer {KEY}", "Bearer sk-openai-98765"]


def test_the_key_is_needed_when_something_is_sent_and_not_before(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    embedder = open_embedder("openai:text-embedding-3-small")
    assert embedder.identity.startswith("served:text-embedding-3-small-")
    assert embedder.window == 8_191
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        embedder.embed_queries(["rain"])


def test_the_server_of_a_strangers_index_gets_nothing_unasked(tmp_path, monkeypatch, ragbed):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "theirs"))
    monkeypatch.setenv("RAGBED_API_KEY", KEY)
    (tmp_path / "a.txt").write_text("rain")
    with serving(usual) as (url, seen):
        monkeypatch.setattr("ragbed.retrieval.embedders.opening.is_loopback", lambda url: False)
        assert ragbed("index", tmp_path / "a.txt", "--out", tmp_path / "i", "--embedder", f"{url}#m")[0] == 0
        assert ragbed("search", "rain", "--index", tmp_path / "i")[0] == 0  # whoever built it named the server
        asked = len(seen)
        monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "mine"))
        ragbed.refuses("search", "rain", "--index", tmp_path / "i", says=[url, "--allow-server"])
        (tmp_path / "b.txt").write_text("more rain")
        ragbed.refuses("index", tmp_path / "b.txt", "--out", tmp_path / "i", "--add", says=["--allow-server"])
        assert len(seen) == asked
        assert ragbed("search", "rain", "--index", tmp_path / "i", "--allow-server")[0] == 0
        assert ragbed("search", "rains", "--index", tmp_path / "i")[0] == 0
        assert len(seen) == asked + 2


def limited(status, message, most=2_048, characters=10 ** 9, longest=10 ** 9):
    """A server that refuses more texts, more characters in all, or a longer text than it takes."""
    def script(body):
        sizes = list(map(len, body["input"]))
        if len(sizes) > most or sum(sizes) > characters or max(sizes) > longest:
            return status, {}, message if isinstance(message, bytes) else {"error": {"message": message}}
        return usual(body)

    return script


@each(("status", "message", "most"), [
    (422, "batch size 64 > maximum allowed batch size 32", 32),  # TEI
    (413, "batch size 64 > maximum allowed batch size 32", 32),
    (422, b'{"detail": [{"msg": "List should have at most 32 items after validation, not 64"}]}', 32),  # Infinity
    (400, "'$.input' is invalid: array too long, expected a maximum length of 10", 10),  # OpenAI
    (400, "too many inputs. The max number of inputs is 16.", 16),  # Azure
    (400, "invalid request: total number of texts must be at most 30 - received 64", 30),  # Cohere
    (400, b'{"detail": "The batch size limit is 20. Your batch has size 64."}', 20),  # Voyage
    (400, "* BatchEmbedContentsRequest.requests: at most 50 requests can be in one batch", 50),  # Gemini
    (400, "input\u6570\u7ec4\u6700\u5927\u4e0d\u5f97\u8d85\u8fc764\u6761", 8),  # Zhipu
])
def test_a_batch_that_is_too_large_is_sent_in_parts_and_its_size_is_kept(status, message, most):
    with serving(limited(status, message, most)) as (url, seen):
        embedder = open_embedder(Server(model=f"{url}#m", concurrency=1))
        found = embedder.embed_passages(["a" * length for length in range(1, 151)])
        np.testing.assert_allclose(found[:, 0] / found[:, 1], range(1, 151), rtol=1e-5)
        sizes = [len(body["input"]) for _, body, _ in seen]
        refused = [size for size in sizes if size > most]
        assert len(refused) == len({*refused})  # no size is refused twice
        assert sum(sizes) - sum(refused) == 150
        embedder.embed_queries(["rain"] * 60)
        assert max(len(body["input"]) for _, body, _ in seen[len(sizes):]) <= most


@pytest.mark.parametrize(("status", "message"), [
    (400, "Invalid 'input': requested 301234 tokens, max 300000 tokens per request"),  # OpenAI
    (400, "The max allowed tokens per submitted batch is 120000. Your batch has 200000 tokens."),  # Voyage
    (429, "Request too large for text-embedding-3-small on tokens per min (TPM): Limit 40000, Requested 45000"),
    (500, "input is too large to process. increase the physical batch size"),  # llama.cpp
    (413, b"<html><h1>413 Request Entity Too Large</h1></html>"),  # nginx
])
def test_a_request_with_too_many_tokens_or_bytes_is_sent_in_parts(status, message):
    with serving(limited(status, message, characters=400)) as (url, seen):
        embedder = open_embedder(Server(model=f"{url}#m", batch=16))
        found = embedder.embed_passages([f"{number} " * 30 for number in range(10, 50)])
        np.testing.assert_allclose(found[:, 0] / found[:, 1], [90] * 40, rtol=1e-5)
        assert {sum(map(len, body["input"])) for _, body, _ in seen} >= {360}


@pytest.mark.parametrize(("status", "message"), [
    (413, "`inputs` must have less than 512 tokens. Given: 600"), (400, "the input length exceeds the context length"),
    (400, "Input length 600 exceeds maximum allowed token size 512"),
    (500, "input (600 tokens) is too large to process. increase the physical batch size (current batch size: 512)"),
])
def test_one_text_that_is_too_long_names_its_document_or_is_cut(status, message, tmp_path, monkeypatch, ragbed):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "docs").mkdir()
    for name, words in {"a": 20, "long": 200, "z": 30}.items():
        (tmp_path / "docs" / f"{name}.txt").write_text(f"{name} rain " * words)
    with serving(limited(status, message, longest=1_000)) as (url, seen):
        index = ["index", tmp_path / "docs", "--out", tmp_path / "idx", "--chunker", "{kind: fixed, size: 3000}"]
        ragbed.refuses(*index, "--embedder", f"{url}#m", says=["long.txt: embedder m", message, "set window to"])
        assert ragbed(*index, "--embedder", f"{{kind: server, model: '{url}#m', long: truncated}}")[0] == 0
        embedder = open_embedder(Server(model=f"{url}#m", long="truncated", batch=4, concurrency=1))
        embedder.embed_passages(["short"] * 7 + ["x" * 1_800] + ["short"] * 8)
        assert len(seen[-1][1]["input"]) == 4  # one long text does not make later batches smaller


@pytest.mark.parametrize(("status", "message"), [
    (429, "Rate limit reached for tokens per min. Limit: 1000000. Reduce your batch size or try again in 6ms."),
    (503, "Model is overloaded"), (504, "upstream took too long to respond"), (500, "internal error"),
])
def test_what_passes_is_retried_and_never_split(status, message):
    waiting = [(status, {"Retry-After": "0"}, {"error": message})] * 2
    with serving(lambda body: waiting.pop() if waiting else usual(body)) as (url, seen):
        open_embedder(f"{url}#m").embed_passages(["a", "b", "c"])
    assert [len(body["input"]) for _, body, _ in seen] == [3, 3, 3]


def test_a_refusal_that_says_nothing_of_the_size_is_not_split():
    with serving(lambda body: (400, {}, {"error": "model m does not exist"})) as (url, seen), \
            pytest.raises(ModelError, match="model m does not exist; check the model's name"):
        open_embedder(f"{url}#m").embed_passages(["a", "b", "c"])
    assert len(seen) == 1
