"""The command on another machine, as it were: no network, no models, no caches."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

OFFLINE = """
import sys

def refuse(event, details):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise SystemExit(f"{event} of {details}")

sys.addaudithook(refuse)
from ragbed.experiments.cli import main
main()
"""


def elsewhere(folder: Path, *args: object) -> tuple[int, str, str]:
    """The command in a process and folder of its own, with neither models nor caches, ended where it connects."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("RAGBED", "OPENAI", "HF_"))}
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    bare |= {"RAGBED_MODELS": str(empty), "RAGBED_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1",
             "HOME": str(empty), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", OFFLINE, *map(str, args)], cwd=folder, env=bare, capture_output=True,
                          text=True)
    return done.returncode, done.stdout, done.stderr
