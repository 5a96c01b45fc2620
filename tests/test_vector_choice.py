"""Which kind of index is chosen for so many vectors in so much memory, and what is free."""
import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from ragbed.documents import SettingsError
from ragbed.retrieval import Auto, Flat, Hnsw, IndexSettings, Ivf, IvfPq, VectorIndex, vector_settings
from ragbed.retrieval.memory import free_memory
from ragbed.retrieval.vector_settings import Decided, choose

MILLION = 1_000_000


@pytest.mark.parametrize(("count", "memory", "kind", "codes", "why"), [
    (100_000, "1GB", "flat", "float32", "chosen up to 100,000 vectors"),
    (100_000, "100MB", "flat", "sq8", "153.6 MB do not fit into 100.0 MB of memory"),
    (100_000, "1MB", "flat", "sq8", "38.4 MB do not fit into 1.0 MB of memory, and this is the smallest"),
    (100_001, "1GB", "hnsw", "float32", "chosen above 100,000 vectors"),
    (MILLION, "4GB", "hnsw", "float32", "chosen above 100,000 vectors"),
    (MILLION, "1GB", "hnsw", "sq8", "chosen above 100,000 vectors, and 1.8 GB do not fit into 1.0 GB of memory"),
    (9, "1kB", "flat", "sq8", "3.5 KB do not fit into 1.0 KB of memory, and this is the smallest"),
    (MILLION, "500MB", "ivf_pq", "sq8", "656.1 MB do not fit into 500.0 MB of memory"),
    (MILLION, "450MB", "ivf_pq", "sq8", "452.7 MB do not fit into 450.0 MB of memory, and this is the smallest"),
])
def test_number_and_memory_decide_and_the_reason_is_told(count, memory, kind, codes, why):
    chosen = choose(Auto(memory=memory), count, 384)
    assert (chosen.settings.kind, getattr(chosen.settings, "codes", None) or chosen.settings.refine) == (kind, codes)
    assert chosen.why.endswith(why)


def test_without_a_limit_half_of_what_is_free_may_be_taken(monkeypatch):
    monkeypatch.setattr(vector_settings, "free_memory", lambda: 2_000_000_000)
    chosen = choose(Auto(), MILLION, 384)
    assert (chosen.settings.kind, chosen.settings.codes) == ("hnsw", "sq8")
    assert chosen.why.endswith("do not fit into 1.0 GB of memory, half of what is free")
    monkeypatch.setattr(vector_settings, "free_memory", lambda: None)
    assert choose(Auto(), MILLION, 384).settings == Hnsw()


def test_what_is_set_is_taken_whatever_the_number():
    assert choose(Hnsw(), 9, 384) == (Hnsw(), "as set")
    assert choose(Ivf(), MILLION, 384).settings == Ivf(lists=8_000, probes=32)
    assert choose(Ivf(lists=100, probes=50), MILLION, 384).settings == Ivf(lists=100, probes=50)
    assert choose(IvfPq(), 10_000, 384).settings == IvfPq(lists=800, probes=32, pieces=48)
    assert choose(IvfPq(), 100, 100).settings == IvfPq(lists=10, probes=1, pieces=10)
    assert choose(Ivf(), 0, 384).settings == Ivf(lists=1, probes=1)


def test_pieces_divide_the_dimensions():
    with pytest.raises(SettingsError, match=r"7 pieces do not divide the vectors' 384 numbers: take 6$"):
        choose(IvfPq(pieces=7), MILLION, 384)


@pytest.mark.parametrize(("settings", "told"), [
    (Auto(), "flat: all 300 vectors are compared (exact; chosen up to 100,000 vectors)"),
    (Flat(codes="sq8"), "flat: all 300 vectors are compared, in 8-bit codes (approximate; as set)"),
    (Hnsw(), "hnsw: 300 vectors in a graph with 32 neighbours each (approximate; as set)"),
    (Hnsw(threads=2, codes="float16"), "hnsw: 300 vectors in a graph with 32 neighbours each, in 16-bit codes, linked "
                                       "by 2 threads, otherwise each time (approximate; as set)"),
    (Ivf(), "ivf: 300 vectors in 30 lists, of which a query reads 3 (approximate; as set)"),
    (IvfPq(lists=10), "ivf_pq: 300 vectors in 10 lists, of which a query reads 1, as 2 bytes each, the best 8 times as "
                      "many compared again, in 8-bit codes (approximate; as set)"),
])
def test_an_index_says_how_it_searches_and_why(settings, told):
    vectors = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    assert VectorIndex.build(vectors, settings).describe() == told


def test_a_name_stands_for_a_kind_and_older_manifests_have_names():
    assert IndexSettings(vectors="auto") == IndexSettings()
    assert IndexSettings(vectors="hnsw").vectors == Hnsw()
    assert IndexSettings(vectors={"kind": "auto", "memory": "2GB"}).vectors.memory == 2_000_000_000
    decided = TypeAdapter(Decided)
    assert [decided.validate_python(name) for name in ("flat", "hnsw")] == [Flat(), Hnsw()]
    again = IndexSettings.model_validate_json(IndexSettings(vectors=IvfPq(lists=7)).model_dump_json())
    assert again.vectors == IvfPq(lists=7)


@pytest.mark.parametrize("wrong", ["hnws", {"kind": "flat", "lists": 3}, {"kind": "ivf", "probes": 0},
                                   {"kind": "hnsw", "codes": "int4"}, {"kind": "auto", "memory": "much"}])
def test_settings_are_closed(wrong):
    with pytest.raises(ValidationError):
        IndexSettings(vectors=wrong)


def laid(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return free_memory(folder / "proc", folder / "cgroup")


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n"}


def test_the_machine_says_what_is_free(tmp_path):
    assert laid(tmp_path, MEMINFO) == 8_192_000


def test_the_tightest_control_group_counts(tmp_path):
    assert laid(tmp_path, {
        **MEMINFO, "proc/self/cgroup": "0::/job/task\n", "cgroup/job/task/memory.max": "max\n",
        "cgroup/job/task/memory.current": "10\n", "cgroup/job/memory.max": "5000\n",
        "cgroup/job/memory.current": "3000\n",
        "cgroup/job/memory.stat": "anon 2000\ninactive_file 500\n"}) == 2_500
