"""Lines of a scripted server, and replies, that call tools."""
import json

from ragbed.strategies import Reply


def called(*calls, text=None):
    """What a server replies that calls tools: each is a name and its arguments as they are sent."""
    return {"finish_reason": "tool_calls", "message": {"role": "assistant", "content": text, "tool_calls": [
        {"id": f"id{place}{name}", "type": "function", "function": {
            "name": name, "arguments": said if isinstance(said, str) else json.dumps(said)}}
        for place, (name, said) in enumerate(calls)]}}


def searching(*queries):
    return called(*(("search", {"query": query}) for query in queries))


def reply_of(line, text=""):
    """The reply that such a line comes to."""
    return Reply(text, tool_calls=tuple(line["message"]["tool_calls"]))


FINISH = called(("finish", {}))
