"""Fixtures for tests of the server: an index of two short pages, and a server of it."""
import pytest
from serving import answering as answering_from
from serving import index_of


@pytest.fixture(scope="session")
def capitals(tmp_path_factory):
    """An index over two short pages."""
    return index_of(tmp_path_factory.mktemp("capitals"))


@pytest.fixture
def answering(serve, capitals, tmp_path):
    """Serves that index; see `serving.answering`."""
    with answering_from(serve, capitals, tmp_path) as start:
        yield start
