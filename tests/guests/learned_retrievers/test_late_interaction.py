"""Reranking by late interaction: the formula by hand, windows, what is kept, and models out of folders."""
import numpy as np
import pytest
import tiny_rerankers

from ragbed.documents import digest
from ragbed.experiments.guests.learned_retrievers.late_interaction import LateInteraction, MaxSim, TokenVectors, maxsim
from ragbed.retrieval import RerankerDeps, find_model
from ragbed.retrieval.storage.cache import VectorStore

EAST, NORTH = [1.0, 0.0], [0.0, 1.0]
QUERY, TEXTS = "who founded the company", ["ada founded it in 1999", "zebra eats grass ."]


def rows(*vectors, precision=np.float32):
    return np.array(vectors, precision).reshape(-1, 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_rerankers.sentence_model(tmp_path_factory.mktemp("models") / "sentences")


def vectors(folder, **fields):
    return TokenVectors(find_model(str(folder)), **fields)


def test_each_token_of_the_query_has_its_nearest_of_the_passage():
    """East has 0.6 of (0.6, 0.8) and 0 of north; north has 0.8 and 1."""
    passage = rows([0.6, 0.8], NORTH)
    assert maxsim([rows(EAST), rows(NORTH), rows(EAST, NORTH)], passage) == pytest.approx([0.6, 1.0, 0.8])


def test_a_token_of_the_query_counts_by_its_length():
    """East three times as much as north, which has 0.8 of the passage: (3 * 0.6 + 0.8) / 4."""
    assert maxsim([rows([3.0, 0.0], NORTH), rows(NORTH)], rows([0.6, 0.8])) == pytest.approx([0.65, 0.8])


def test_scores_are_those_of_the_tokens_of_the_models_last_layer(folder):
    from sentence_transformers import SentenceTransformer

    tokens = SentenceTransformer(str(folder), device="cpu").encode([QUERY, *TEXTS], output_value="token_embeddings")
    query, *passages = (one.numpy() for one in tokens)
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in passages]
    length = np.linalg.norm(query, axis=1).sum()
    expected = [float((query @ passage.T).max(axis=1).sum() / length) for passage in unit]
    own, none, same = MaxSim(vectors(folder)).scores([QUERY, "zebra", QUERY], [TEXTS, [], TEXTS[::-1]])
    assert own == pytest.approx(expected, abs=1e-3)  # token vectors are kept in half precision
    assert (none, same) == ([], own[::-1])


def test_the_tokens_of_a_long_passage_are_those_of_all_its_windows(folder):
    """Of 16 tokens two are special: windows of 14 words."""
    both, one, other = vectors(folder).passages(["ada " * 14 + "zebra " * 6, "ada " * 14, "zebra " * 6])
    assert len(both) == len(one) + len(other) == 16 + 8
    assert np.abs(both.astype(float) - np.concatenate([one, other])).max() < 2e-3


def test_what_is_kept_is_bounded_and_does_not_change_a_score(folder):
    texts = [f"ada founded {word}" for word in tiny_rerankers.WORDS]
    whole, small, none = (MaxSim(vectors(folder, kept=kept)) for kept in (1 << 20, 1_000, 0))
    first = whole.scores([QUERY], [texts])
    assert whole.scores([QUERY], [texts]) == first
    assert small.scores([QUERY], [texts])[0] == pytest.approx(first[0], abs=1e-6)
    assert none.scores([QUERY], [texts])[0] == pytest.approx(first[0], abs=1e-6)
    assert small._vectors._bytes <= 1_000 < whole._vectors._bytes
    assert none._vectors._bytes == 0


@pytest.mark.slow
def test_what_is_kept_on_disk_is_read_by_the_next_process_and_changes_no_score(folder, tmp_path):
    def opened():
        return MaxSim(vectors(folder), VectorStore(tmp_path / "tokens.sqlite", "<f2"))

    swapped = {digest("ada"): vectors(folder).passages(["zebra eats grass"])[0]}
    VectorStore(tmp_path / "tokens.sqlite", "<f2").write(swapped)
    texts = [*TEXTS, "ada " * 40, "", "zebra eats grass"]
    first = opened().scores([QUERY], [texts])
    assert opened().scores([QUERY], [[*texts, "ada"]]) == [[*first[0], first[0][-1]]]  # as it was kept
    assert first == MaxSim(vectors(folder)).scores([QUERY], [texts])
    plain, kept = LateInteraction(model=str(folder)), LateInteraction(model=str(folder), keep=True)
    assert plain.identity() == kept.identity()
    assert plain.open(RerankerDeps())._vectors is kept.open(RerankerDeps())._vectors


@pytest.mark.slow
def test_a_model_made_for_it_is_read_as_it_was_saved(tmp_path):
    from sentence_transformers import MultiVectorEncoder

    folder = tiny_rerankers.multi_vector_model(tmp_path / "multi")
    saved = MultiVectorEncoder(str(folder), device="cpu")
    expected = saved.encode_document(TEXTS, convert_to_numpy=True)
    found = vectors(folder).passages(TEXTS)
    assert [one.shape for one in found] == [(7, 8), (5, 8)]  # the full stop is left out
    for own, other in zip(found, expected, strict=True):
        assert own == pytest.approx(other, abs=1e-3)
