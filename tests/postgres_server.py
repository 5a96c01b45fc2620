"""A PostgreSQL server for tests."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest


@contextlib.contextmanager
def postgres_server(password="bell-and-lamp"):
    """The address of a new PostgreSQL server, as another user than root, which it refuses; and a function that starts,
    stops or restarts it."""
    found = shutil.which("postgres") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/postgres")), None)
    if found is None:
        pytest.skip("no PostgreSQL is installed: apt-get install postgresql")
    programs, folder = Path(found).resolve().parent, Path(tempfile.mkdtemp(dir="/tmp"))
    (folder / "password").write_text(password)
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    if user:
        for path in (folder, folder / "password"):
            shutil.chown(path, "nobody", "nogroup")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    subprocess.run([programs / "initdb", "-D", folder / "data", "-U", "ragbed", "-A", "scram-sha-256", "--no-sync",
                    "-E", "UTF8", "--locale=C", f"--pwfile={folder / 'password'}"], check=True, capture_output=True,
                   **user)
    options = f"-p {port} -k {folder} -c fsync=off -c listen_addresses=127.0.0.1"

    def control(verb):
        how = ["-m", "immediate"] if verb != "start" else []
        subprocess.run([programs / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o", options, verb,
                        *how], check=verb != "stop", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)

    control("start")
    try:
        yield f"postgres://ragbed:{password}@127.0.0.1:{port}/postgres", control
    finally:
        control("stop")
        shutil.rmtree(folder)
