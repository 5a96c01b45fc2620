"""A model that gives every strategy something to go on with: what it says depends on the conversation alone."""
import hashlib
import json

SAYS = (
    "1. Which country is Oslo in?\n2. Which continent is Norway on?", "Search: capital of Italy",
    "Follow-up: Where is Rome?",
    "Thought: Rome comes next.\nAction: search[capital of Italy]", "Missing: Italy\nSufficiency: 3",
    "Fault: it cites nothing.",
    "Question: Where is Rome?\nGrade: 1", "| city | country |\n| Oslo | Norway |",
    "[1] \"Oslo is the capital of Norway.\"",
    "first = 1900 + 26\nlast = first + 10", "<Answer>Norway [1]</Answer>", "1: no\n2: yes\nBest: 2",
    "<Answer>Rome is the capital of Italy [2], and Oslo has 700,000 people [1].</Answer>")


def reply(body):
    """A line for the scripted server."""
    place = int(hashlib.sha256(json.dumps([body["messages"], body.get("seed")]).encode()).hexdigest(), 16)
    asked = sum(message["role"] == "tool" for message in body["messages"])
    if "response_format" in body:
        return json.dumps(instance(body["response_format"]["json_schema"]["schema"], place))
    if body.get("tools") and asked < 2:
        name = body["tools"][0]["function"]["name"]
        said = {"name": name, "arguments": json.dumps({"query": f"capital of Italy {asked}"})}
        call = {"id": f"c{asked}", "type": "function", "function": said}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    return SAYS[place % len(SAYS)]


def instance(schema, place):
    """A value that fits a schema."""
    match schema.get("type"):
        case "object":
            return {name: instance(one, place + at) for at, (name, one) in enumerate(schema["properties"].items())}
        case "array":
            return [instance(schema["items"], place + at) for at in range(2)]
        case "boolean":
            return place % 3 == 0
        case "integer" | "number":
            return place % 3
    return schema["enum"][place % len(schema["enum"])] if "enum" in schema else SAYS[place % len(SAYS)]
