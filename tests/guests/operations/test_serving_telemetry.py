"""Figures for Prometheus and traces for OpenTelemetry, as those who collect them get them."""
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2 as httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from patience import SECONDS
from prometheus_client.parser import text_string_to_metric_families
from serving import direct, index_of, served
from streamed import streamed

QUESTION = {"model": "direct", "messages": [{"role": "user", "content": "Which country is Oslo the capital of?"}]}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def collector(monkeypatch):
    """An OTLP receiver on loopback, and the spans that came."""
    spans = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                spans.extend((span, _read(resource.resource.attributes))
                             for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *given):
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield spans
        server.shutdown()
        thread.join()


def _read(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def ask(index, url, folder, times=1):
    with (served([direct(index, f"{url}#m")], folder) as at, httpx.Client(base_url=at, timeout=SECONDS) as client):
        for _ in range(times):
            client.post("/v1/chat/completions", json={**QUESTION, "stream": True})
        return client.get("/metrics").text


def test_an_answer_is_one_trace_of_its_searches_and_calls(serve, index, tmp_path, collector):
    ask(index, serve([streamed("Norway [1].")]).url, tmp_path / "t")
    named = {span.name.split()[0]: (span, _read(span.attributes)) for span, _ in collector}
    assert sorted(named) == ["chat", "invoke_agent", "retrieval"]
    root, attributes = named["invoke_agent"]
    assert {span.trace_id for span, _ in collector} == {root.trace_id}
    assert all(span.parent_span_id == root.span_id for span, _ in collector if span.name != root.name)
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <=
               root.end_time_unix_nano for span, _ in collector)
    assert {name: attributes[name] for name in (
        "gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
        "ragbed.outcome", "ragbed.calls")} == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "direct", "gen_ai.usage.input_tokens": 700,
        "gen_ai.usage.output_tokens": 12, "ragbed.outcome": "answered", "ragbed.calls": 1}
    assert (named["chat"][1]["gen_ai.operation.name"], named["chat"][1]["ragbed.purpose"]) == ("chat", "answer")
    assert named["retrieval"][1]["ragbed.found"] == 2
    assert collector[0][1]["service.name"] == "ragbed"
    assert "Oslo" not in str(collector)  # no text of a prompt, a query or a reply, unless it is asked for


def test_texts_are_in_a_trace_where_that_is_asked_for(serve, index, tmp_path, collector, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    ask(index, serve([streamed("Norway [1].")]).url, tmp_path / "t")
    said = {span.name.split()[0]: _read(span.attributes) for span, _ in collector}
    assert said["retrieval"]["gen_ai.retrieval.query.text"] == QUESTION["messages"][0]["content"]
    assert "Norway [1]." in said["chat"]["gen_ai.output.messages"]
    assert "Oslo is the capital of Norway." in said["chat"]["gen_ai.input.messages"]


def test_what_failed_is_an_error_of_its_kind(serve, index, tmp_path, collector):
    ask(index, serve([{"status": 400, "error": {"message": "no"}}]).url, tmp_path / "t")
    named = {span.name.split()[0]: span for span, _ in collector}
    assert [named[name].status.code for name in ("invoke_agent", "chat", "retrieval")] == [2, 2, 0]
    assert _read(named["chat"].attributes)["error.type"] == "http_400"


def test_figures_count_what_was_asked_and_hold_nothing_of_its_text(serve, index, tmp_path):
    text = ask(index, serve([streamed("Norway [1]."), {"status": 400, "error": {"message": "no"}}]).url, tmp_path / "t",
               times=2)
    figures = {(sample.name, *sample.labels.values()): sample.value
               for family in text_string_to_metric_families(text) for sample in family.samples}
    assert {name: figures[name] for name in (
        ("ragbed_requests_total", "/v1/chat/completions", "200"), ("ragbed_answers_total", "direct", "answered"),
        ("ragbed_answers_total", "direct", "error"), ("ragbed_tokens_total", "direct", "prompt"),
        ("ragbed_tokens_total", "direct", "completion"), ("ragbed_searches_total", "direct"),
        ("ragbed_first_text_seconds_count", "direct"), ("ragbed_answer_seconds_count", "direct"),
        ("ragbed_model_failures_total", "direct", "http_400"), ("ragbed_running",), ("ragbed_waiting",))} == {
        ("ragbed_requests_total", "/v1/chat/completions", "200"): 2, ("ragbed_answers_total", "direct", "answered"): 1,
        ("ragbed_answers_total", "direct", "error"): 1, ("ragbed_tokens_total", "direct", "prompt"): 700,
        ("ragbed_tokens_total", "direct", "completion"): 12, ("ragbed_searches_total", "direct"): 2,
        ("ragbed_first_text_seconds_count", "direct"): 2, ("ragbed_answer_seconds_count", "direct"): 2,
        ("ragbed_model_failures_total", "direct", "http_400"): 1, ("ragbed_running",): 0, ("ragbed_waiting",): 0}
    assert "Oslo" not in text


def test_a_path_that_nobody_serves_is_no_label(serve, index, tmp_path):
    with served([direct(index, f"{serve([]).url}#m")], tmp_path / "t") as url:
        for number in range(20):
            assert httpx.get(f"{url}/nothing/{number}").status_code == 404
        text = httpx.get(f"{url}/metrics").text
    assert 'ragbed_requests_total{route="other",status="404"} 20.0' in text
    assert "nothing" not in text


def test_a_trace_of_the_client_goes_on_in_ours_and_in_the_models(serve, index, tmp_path, collector):
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    model = serve(lambda body: "Norway [1].")
    with (served([direct(index, f"{model.url}#m")], tmp_path / "t") as at,
          httpx.Client(base_url=at, timeout=SECONDS) as client):
        for sent in ({"traceparent": f"00-{trace}-{span}-01"}, {"traceparent": f"00-{trace}-{span}-00"}, {}):
            client.post("/v1/chat/completions", json=QUESTION, headers=sent)
    roots = [one for one, _ in collector if one.name.startswith("invoke_agent")]
    assert [root.trace_id.hex() == trace for root in roots] == [True, False]  # one of the three was not sampled
    assert (roots[0].parent_span_id.hex(), roots[1].parent_span_id) == (span, b"")
    passed_on = [httpx.Headers(headers)["traceparent"] for _, headers in model.requests]
    assert [passed_on[0], passed_on[2]] == [f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01" for root in roots]
    assert passed_on[1].startswith(f"00-{trace}-")
    assert passed_on[1].endswith("-00")


def test_calls_of_tools_are_spans_and_made_up_names_are_unknown(serve, tmp_path, collector):
    from streamed import as_asked
    lines = ['Thought: look\ngrep: {"pattern": "Oslo is"}', "Thought: enough\nfinish", "<Answer>Norway [1]</Answer>"]
    agent = {"kind": "agent", "tools": ["list", "grep"], "protocol": "text"}
    pages = tmp_path / "pages"
    pages.mkdir()
    with served([direct(index_of(pages), f"{serve(as_asked(lambda body: lines.pop(0))).url}#m", reasoning=agent)],
                tmp_path / "t") as at:
        httpx.post(f"{at}/v1/chat/completions", json=QUESTION, timeout=SECONDS)
    (tool,) = [one for one, _ in collector if one.name.startswith("execute_tool")]
    found = _read(tool.attributes)
    assert (tool.name, found["gen_ai.tool.name"], found["ragbed.found"]) == ("execute_tool grep", "grep", 1)
    assert "Oslo" not in str(tool)
