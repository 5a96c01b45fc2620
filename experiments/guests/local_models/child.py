"""The child process that serves one GGUF file: `python -m ragbed.experiments.guests.local_models.child`.

Reads one line of JSON from its standard input (so that the key stands in no argument list), writes one with its
address to its standard output, and lives until its standard input ends.
"""
from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from typing import IO, Any

_PR_SET_PDEATHSIG = 1
_PROMPT_CACHE_MIB = 1024
_WARNINGS = 2  # one level more writes several lines a request into the log


def main() -> None:
    """Serve until the parent is gone."""
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    die_with(order["parent"], signal.SIGKILL)
    answers = _private_stdout()
    watch = threading.Thread(target=_end_with_stdin, daemon=True)
    watch.start()
    server = _serve(order)
    answers.write(json.dumps({"url": server.listening_address}).encode() + b"\n")
    answers.close()
    watch.join()
    del server


def _end_with_stdin() -> None:
    """Wait for the end of standard input, which comes when the parent closes it or is no more, and end."""
    while os.read(0, 1024):
        pass
    # The native server's threads are not worth waiting for: nothing is kept.
    os._exit(0)


def die_with(parent: int, by: signal.Signals) -> None:
    """On Linux, ask the kernel to send this process a signal when the parent's thread that started it ends, however it
    ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(0)


def _private_stdout() -> IO[bytes]:
    """Standard output for the one answer; whatever native code prints goes to the log instead."""
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
    # Its defaults open these to every web page.
    params.cors_origins, params.cors_origins_explicit, params.cors_credentials = "", True, False
    params.use_jinja = True  # without it the server refuses tools; what the model knows of them is its template's
    params.ui = params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
