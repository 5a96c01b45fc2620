"""Every route of a server's OpenAPI page, asked all sorts of things: nothing is answered by a 500."""
import pytest
from hypothesis import HealthCheck, given, settings
from serving import direct, index_of, served

pytestmark = pytest.mark.slow


def test_no_request_is_answered_by_a_server_error(serve, tmp_path):
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error

    model = serve(lambda body: "Norway [1].")
    asked = set()
    with served([direct(index_of(tmp_path), f"{model.url}#m")], tmp_path / "traffic") as url:
        for operation in schemathesis.openapi.from_url(f"{url}/openapi.json").get_all_operations():
            @settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
            @given(case=operation.ok().as_strategy() | operation.ok().as_strategy(GenerationMode.NEGATIVE))
            def ask(case):
                case.call_and_validate(checks=[not_a_server_error])

            ask()
            asked.add(operation.ok().path)
    assert {"/v1/chat/completions", "/api/ask", "/api/feedback", "/api/session", "/metrics"} <= asked
