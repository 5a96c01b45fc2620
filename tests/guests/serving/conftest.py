"""A fixture for tests of the server: it serves the index `capitals`."""
import pytest
from serving import answering as answering_from


@pytest.fixture
def answering(serve, capitals, tmp_path):
    """Serves that index; see `serving.answering`."""
    with answering_from(serve, capitals, tmp_path) as start:
        yield start
