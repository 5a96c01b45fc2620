"""A loopback server that speaks four protocols: chat completions, Anthropic's Messages, Gemini's generateContent and
Bedrock's Converse. Each request takes the next line of the script."""
import binascii
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CACHED, PROMPT, REPLY = 200, 700, 12  # tokens of each reply


class ProtocolServer:
    """Lines are texts, `{"tool": NAME, "args": {...}}`, `{"status": N, "error": TEXT}` or `{"redirect": URL}`, or
    functions of the body that return one of these."""

    def __init__(self, script):
        self.script, self.requests = list(script), []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()

    def _handler(server):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                line = server.script.pop(0) if server.script else {"status": 418, "error": "the script is over"}
                line = line(body) if callable(line) else line
                if isinstance(line, dict) and "redirect" in line:
                    return self.answer(307, b"", {"Location": line["redirect"] + self.path})
                if isinstance(line, dict) and "status" in line:
                    return self.answer(line["status"], json.dumps(error_of(self.path, line)).encode(),
                                       {"Content-Type": "application/json", "x-amzn-ErrorType": line.get(
                                           "kind", "ValidationException"), **line.get("headers", {})})
                kind, content = reply_of(self.path, body, line)
                return self.answer(200, content, {"Content-Type": kind})

            def answer(self, status, content, headers):
                self.send_response(status)
                for name, value in {**headers, "Content-Length": len(content)}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(content)

        return Handler


def error_of(path, line):
    status, message = line["status"], line["error"]
    if "converse" in path:
        return {"message": message}
    if "generateContent" in path or "GenerateContent" in path:
        return {"error": {"code": status, "message": message, "status": line.get("kind", "INVALID_ARGUMENT")}}
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": line.get("kind", "invalid_request_error"), "message": message}}
    return {"error": {"message": message, "type": line.get("kind", "invalid_request_error")}}


def reply_of(path, body, line):
    if "converse" in path:
        return converse(path, line)
    if "enerateContent" in path:
        return gemini(path, line)
    return anthropic(body, line) if path.startswith("/v1/messages") else completion(body, line)


def events(*pieces, names=True):
    return "text/event-stream", "".join(
        (f"event: {piece['type']}\n" if names else "") + f"data: {json.dumps(piece)}\n\n" for piece in pieces).encode()


def halves(text):
    return text[:len(text) // 2], text[len(text) // 2:]


def completion(body, line):
    usage = {"prompt_tokens": PROMPT, "completion_tokens": REPLY, "prompt_tokens_details": {"cached_tokens": CACHED}}
    message = {"role": "assistant", "content": line}
    return "application/json", json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                                           "usage": usage}).encode()


def anthropic(body, line):
    usage = {"input_tokens": PROMPT - CACHED, "cache_read_input_tokens": CACHED, "output_tokens": REPLY}
    tool = not isinstance(line, str)
    block = {"type": "tool_use", "id": "toolu_1", "name": line["tool"], "input": line["args"]} if tool else {
        "type": "text", "text": line}
    stop = "tool_use" if tool else "end_turn"
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [block],
             "stop_reason": stop, "stop_sequence": None, "usage": usage}
    if not body.get("stream"):
        return "application/json", json.dumps(whole).encode()
    first = {**block, "input": {}} if tool else {**block, "text": ""}
    pieces = [{"type": "input_json_delta", "partial_json": one} if tool else {"type": "text_delta", "text": one}
              for one in halves(json.dumps(line["args"]) if tool else line)]
    return events({"type": "message_start", "message": {**whole, "content": [], "stop_reason": None,
                                                        "usage": {**usage, "output_tokens": 1}}},
                  {"type": "content_block_start", "index": 0, "content_block": first},
                  *({"type": "content_block_delta", "index": 0, "delta": one} for one in pieces),
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                   "usage": usage}, {"type": "message_stop"})


def gemini(path, line):
    usage = {"promptTokenCount": PROMPT, "candidatesTokenCount": REPLY, "totalTokenCount": PROMPT + REPLY,
             "cachedContentTokenCount": CACHED}

    def piece(part, **more):
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0, **more}],
                "usageMetadata": usage, "modelVersion": "gemini"}

    parts = [{"text": one} for one in halves(line)] if isinstance(line, str) else [
        {"functionCall": {"name": line["tool"], "args": line["args"]}}]
    if "stream" in path:
        *before, last = parts
        return events(*map(piece, before), piece(last, finishReason="STOP"), names=False)
    return "application/json", json.dumps({**piece({"text": line} if isinstance(line, str) else parts[0],
                                                   finishReason="STOP")}).encode()


def converse(path, line):
    usage = {"inputTokens": PROMPT - CACHED, "outputTokens": REPLY, "totalTokens": PROMPT + REPLY,
             "cacheReadInputTokens": CACHED, "cacheWriteInputTokens": 0}
    tool = not isinstance(line, str)
    stop = "tool_use" if tool else "end_turn"
    if not path.endswith("converse-stream"):
        block = {"toolUse": {"toolUseId": "tool_1", "name": line["tool"], "input": line["args"]}} if tool else {
            "text": line}
        whole = {"output": {"message": {"role": "assistant", "content": [block]}}, "stopReason": stop, "usage": usage,
                 "metrics": {"latencyMs": 1}}
        return "application/json", json.dumps(whole).encode()
    start = [("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {
        "toolUseId": "tool_1", "name": line["tool"]}}})] if tool else []
    deltas = [{"toolUse": {"input": one}} for one in halves(json.dumps(line["args"]))] if tool else [
        {"text": one} for one in halves(line)]
    pieces = [("messageStart", {"role": "assistant"}), *start,
              *(("contentBlockDelta", {"contentBlockIndex": 0, "delta": one}) for one in deltas),
              ("contentBlockStop", {"contentBlockIndex": 0}), ("messageStop", {"stopReason": stop}),
              ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]
    return "application/vnd.amazon.eventstream", b"".join(frame(name, content) for name, content in pieces)


def frame(name, content):
    """One message of AWS's binary event stream."""
    headers = b"".join(bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
                       for key, value in ((":event-type", name), (":content-type", "application/json"),
                                          (":message-type", "event")))
    payload = json.dumps(content).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    prelude += struct.pack(">I", binascii.crc32(prelude))
    return prelude + headers + payload + struct.pack(">I", binascii.crc32(prelude + headers + payload))
