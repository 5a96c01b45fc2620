"""Embeddings of the index's embedder, by OpenAI's own client."""
import numpy as np
import openai
import pytest
from serving import openai_clients

from ragbed.retrieval import Index


@pytest.fixture
def client(answering):
    with openai_clients(answering) as start:
        yield start(options={"embeddings": True})


@pytest.fixture(scope="module")
def embedder(capitals):
    return Index.open(capitals).embedder


def test_texts_have_the_vectors_by_which_the_index_is_searched(client, embedder):
    texts = ["Oslo", "Rome is the capital of Italy."]
    packed = client.embeddings.create(model=embedder.name, input=texts)  # the client asks for base64
    plain = client.embeddings.create(model=embedder.name, input=texts, encoding_format="float")
    for answer in (packed, plain):
        vectors = np.array([one.embedding for one in answer.data])
        np.testing.assert_allclose(vectors, embedder.embed_passages(texts), atol=1e-6)
    query = client.embeddings.create(model=embedder.name, input="Oslo", extra_body={"input_type": "query"})
    np.testing.assert_allclose(query.data[0].embedding, embedder.embed_queries(["Oslo"])[0], atol=1e-6)


def test_what_cannot_be_embedded_is_refused(client, embedder):
    for request, status, said in (
            ({"model": "ada"}, 404, "no embedder 'ada'; there are "), ({"dimensions": 64}, 422, "dimensions"),
            ({"input": ["Oslo"] * 513}, 422, "at most 512"), ({"input": ["Oslo", ""]}, 422, "at least 1 character"),
            ({"input": [[1, 2]]}, 422, "valid string"),
            ({"input": ["Oslo", "Oslo " * 5_000]}, 400, "input 1 is longer than the ")):
        with pytest.raises(openai.APIStatusError, match=said) as error:
            client.embeddings.create(**{"model": embedder.name, "input": "Oslo", **request})
        assert error.value.status_code == status


def test_embedders_are_not_served_unless_that_is_switched_on(answering):
    with openai_clients(answering) as start, pytest.raises(openai.NotFoundError):
        start().embeddings.create(model="any", input="Oslo")
