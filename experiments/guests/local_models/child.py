"""The child process that serves one GGUF file: `python -m ragbed.experiments.guests.local_models.child`.

It reads one line of JSON from standard input, which keeps the key out of the argument list. It writes one line with its
address to standard output, and runs until standard input ends."""
from __future__ import annotations

import json
import os
import sys
import threading
from typing import IO, Any

from ragbed.documents.child_process import end_with_parent

_PROMPT_CACHE_MIB = 1024
_WARNINGS = 2  # a higher level would log several lines per request


def main() -> None:
    """Serve until the parent ends."""
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    end_with_parent(order["parent"])
    answers = _private_stdout()
    watch = threading.Thread(target=_end_with_stdin, daemon=True)
    watch.start()
    server = _serve(order)
    answers.write(json.dumps({"url": server.listening_address}).encode() + b"\n")
    answers.close()
    watch.join()
    del server


def _end_with_stdin() -> None:
    """End the process when standard input ends, because the parent closed it or ended."""
    while os.read(0, 1024):
        pass
    # do not wait for the native server's threads
    os._exit(0)


def _private_stdout() -> IO[bytes]:
    """Return standard output for the line with the address, and redirect the output of native code to the log."""
    mine = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(mine, "wb")


def _serve(order: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = order["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["key"]]
    params.n_ctx = order["context"]
    params.n_parallel = 1
    params.cpuparams.n_threads = order["threads"]
    params.cpuparams_batch.n_threads = order["threads"]
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.offline = True
    params.verbosity = _WARNINGS
    # the defaults allow requests from every web page
    params.cors_origins, params.cors_origins_explicit, params.cors_credentials = "", True, False
    params.use_jinja = True  # needed for tool calls
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
