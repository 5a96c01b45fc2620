"""A finished run for the tests of this folder, which is made once and restored for each."""
import contextlib
import shutil

import pytest
from conftest import Town
from scripted_server import ScriptedServer

from ragbed.experiments import run


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A finished run, in a folder that the tests take turns to alter, and a copy of that."""
    town = Town(tmp_path_factory.mktemp("town"))
    with contextlib.closing(ScriptedServer(town.reply)) as server, \
            run(str(town.config(server.url, reasoning=["direct", "least_to_most"]))):
        pass
    return town, shutil.copytree(town.folder, tmp_path_factory.mktemp("copy") / "town")


@pytest.fixture
def town(made):
    town, copy = made
    shutil.rmtree(town.folder)
    shutil.copytree(copy, town.folder)
    return town
