"""Which errors say that a server does not accept a parameter, in the words of several servers."""
import json

import pytest
from each_case import each

from ragbed.agents import ModelSettings, open_model
from ragbed.agents.http_errors import refused_parameter
from ragbed.documents import CallError
from ragbed.strategies import Generate, Message

SENT = {"model": "m", "messages": [], "temperature": 0.0, "max_tokens": 64, "seed": 1, "stop": ["END"],
        "response_format": {"type": "json_schema"}, "tool_choice": "none"}
ASK = Generate((Message("user", ("Where?",)),), "answer")


def openai(message, param=None, code=None):
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


@each(("body", "name"), [
    (openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.", "max_tokens", "unsupported_parameter"), "max_tokens"),
    (openai("Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is "
            "supported.", "temperature", "unsupported_value"), "temperature"),
    (openai("Unsupported parameter: 'stop' is not supported with this model.", "stop"), "stop"),
    (openai("Unrecognized request argument supplied: seed"), "seed"),
    (openai("This model does not support response_format."), "response_format"),
    (openai("The model can't take this", "seed", "unknown_parameter"), "seed"),
    (openai("The model can't take this", "seed"), None),
    ({"type": "error", "error": {"type": "invalid_request_error",
              "message": "`temperature` is deprecated for this model."}}, "temperature"),
    ({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, "seed"),
    ({"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"],
                              "msg": "Extra inputs are not permitted"}]}}, "seed"),
    ([{"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \"seed\": Cannot find field.",
                 "status": "INVALID_ARGUMENT"}}], "seed"),
    # other mistakes are not tried again
    (openai("Invalid 'temperature': must be between 0 and 2.", "temperature", "decimal_above_max_value"), None),
    (openai("max_tokens is too large: 64. This model supports at most 32 completion tokens.", "max_tokens"), None),
    (openai("Invalid schema for response_format 'reply': In context=(), 'oneOf' is not permitted.",
            "response_format", "invalid_value"), None),
    (openai("Unsupported model: m", "model"), None),
    (openai("Unknown error; please stop sending requests"), None),
    (openai("top_k is not supported"), None),
    (openai("prompt is too long"), None)])
def test_a_refused_parameter_is_told_from_other_errors(body, name):
    assert refused_parameter(400, json.dumps(body).encode(), SENT) == name
    assert refused_parameter(500, json.dumps(body).encode(), SENT) is None
    if name is not None:
        rest = {key: value for key, value in SENT.items() if key != name}
        assert refused_parameter(400, json.dumps(body).encode(), rest) is None


async def test_a_limit_with_another_name_is_sent_under_it_and_a_server_that_refuses_both_is_an_error(serve):
    old = {"status": 400, **openai("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "max_tokens")}
    new = {"status": 400, **openai("Unsupported parameter: 'max_completion_tokens'", "max_completion_tokens")}
    server = serve([old, "Paris"])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        reply = (await model.complete(ASK, max_tokens=64)).reply
    assert (reply.text, reply.unsent) == ("Paris", ("m", "max_tokens (sent as max_completion_tokens)"))
    assert server.requests[1][0]["max_completion_tokens"] == 64
    server = serve([old, new, "Paris"])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        with pytest.raises(CallError, match="HTTP 400"):
            await model.complete(ASK, max_tokens=64)
    assert len(server.requests) == 2
