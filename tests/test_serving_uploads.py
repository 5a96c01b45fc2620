"""Documents that clients add, where the server lets them."""
import httpx2 as httpx
import pytest
from serving import direct, index_of, served
from test_serving_reload import until

from ragbed.experiments.serving import configurations


@pytest.fixture
def client(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(configurations, "RENEWAL_SECONDS", 0.1)
    model = serve(lambda body: "Bergen [1]." if "Bergen is" in body["messages"][-1]["content"] else "None [1].")
    described = [direct(index_of(tmp_path), f"{model.url}#m")]
    with served(described, tmp_path / "traffic", uploads=tmp_path / "inbox") as url, \
            httpx.Client(base_url=url, timeout=60) as client:
        yield client


def add(client, name, body):
    return client.post("/api/documents", params={"name": name}, content=body)


def test_an_added_document_is_answered_from(client, tmp_path):
    question = {"model": "direct", "messages": [{"role": "user", "content": "What lies at the western fjords?"}]}

    def answer():
        return client.post("/v1/chat/completions", json=question).json()["choices"][0]["message"]["content"]

    assert answer() == "None [1]."
    added = add(client, "bergen.txt", f"Bergen is what lies at the western fjords. {'x' * 2_000_000}")
    assert (added.status_code, added.json()) == (201, {"name": "bergen.txt", "documents": 3})
    until(lambda: answer() == "Bergen [1].")
    assert (tmp_path / "inbox" / "bergen.txt").is_file()
    assert add(client, "bergen.txt", "another").status_code == 409
    assert add(client, "oslo.txt", "in the place of the index's own").status_code == 409


def test_what_cannot_be_added_is_refused_and_not_kept(client, tmp_path):
    for name, body, status in (
            ("../oslo2.txt", "x", 422), ("a/b.txt", "x", 422), (".hidden.txt", "x", 422), ("a\nb.txt", "x", 422),
            ("run.exe", "x", 415), ("broken.pdf", "no PDF", 422), ("empty.txt", "", 422),
            (f"{'é' * 190}.txt", "x", 422)):
        refused = add(client, name, body)
        assert (refused.status_code, refused.json()["error"]["type"]) == (status, "invalid_request_error"), name
    assert not [*(tmp_path / "inbox").glob("*")]


def test_nothing_is_taken_where_it_is_not_switched_on(serve, tmp_path):
    described = [direct(index_of(tmp_path), f"{serve([]).url}#m")]
    with served(described, tmp_path / "traffic") as url:
        assert httpx.post(f"{url}/api/documents?name=a.txt", content="x").status_code in (404, 405)
