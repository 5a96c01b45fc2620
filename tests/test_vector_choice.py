"""Which kind of vector index is chosen for a number of vectors and an amount of memory."""
import numpy as np
import pytest
from each_case import each
from pydantic import TypeAdapter, ValidationError

from ragbed.retrieval import Auto, Flat, Hnsw, IndexSettings, RaBitQ, VectorIndex, vector_index
from ragbed.retrieval.index_settings import ResolvedVectors
from ragbed.retrieval.memory import free_memory

MILLION = 1_000_000


@each(("count", "memory", "kind", "codes", "why"), [
    (100_000, "1GB", "flat", "float32", "chosen up to 100,000 vectors"),
    (100_000, "100MB", "flat", "sq8", "153.6 MB do not fit into 100.0 MB of memory"),
    (100_000, "1MB", "flat", "sq8", "38.4 MB do not fit into 1.0 MB of memory, and this is the smallest"),
    (100_001, "1GB", "rabitq", "float16", "chosen above 100,000 vectors"),
    (MILLION, "1GB", "rabitq", "float16", "chosen above 100,000 vectors"),
    (MILLION, "0.5GB", "rabitq", "sq8", "above 100,000 vectors, and 824.0 MB do not fit into 500.0 MB of memory"),
    (9, "1kB", "flat", "sq8", "3.5 KB do not fit into 1.0 KB of memory, and this is the smallest"),
    (MILLION, "400MB", "rabitq", "sq8", "440.0 MB do not fit into 400.0 MB of memory, and this is the smallest"),
])
def test_number_and_memory_decide_and_the_reason_is_given(count, memory, kind, codes, why):
    chosen = Auto(memory=memory).choose(count, 384)
    assert (chosen.settings.kind, chosen.settings.codes) == (kind, codes)
    assert chosen.why.endswith(why)


def test_by_default_half_of_the_free_memory_may_be_used(monkeypatch):
    monkeypatch.setattr(vector_index, "free_memory", lambda: 1_000_000_000)
    chosen = Auto().choose(MILLION, 384)
    assert (chosen.settings.kind, chosen.settings.codes) == ("rabitq", "sq8")
    assert chosen.why.endswith("do not fit into 500.0 MB of memory, half of what is free")
    monkeypatch.setattr(vector_index, "free_memory", lambda: None)
    assert Auto().choose(MILLION, 384).settings == RaBitQ()


def test_a_kind_that_is_set_is_used_whatever_the_number_of_vectors():
    assert Hnsw().choose(9, 384) == (Hnsw(), "as set")


@pytest.mark.parametrize(("settings", "description"), [
    (Auto(), "flat: all 300 vectors are compared (exact; chosen up to 100,000 vectors)"),
    (Flat(codes="sq8"), "flat: all 300 vectors are compared, in 8-bit codes (approximate; as set)"),
    (RaBitQ(), "rabitq: 300 vectors are compared by 1-bit codes, and the nearest 400 again in 16 bits (approximate; as "
               "set)"),
    (Hnsw(), "hnsw: 300 vectors in a graph with 32 neighbours each (approximate; as set)"),
    (Hnsw(threads=2, codes="float16"), "hnsw: 300 vectors in a graph with 32 neighbours each, in 16-bit codes, linked "
                                       "by 2 threads, different each time (approximate; as set)"),
])
def test_an_index_says_how_it_searches_and_why(settings, description):
    vectors = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    assert VectorIndex.build(vectors, settings).describe() == description


def test_a_name_stands_for_a_kind_and_settings_of_older_indexes_are_read():
    assert IndexSettings(vectors="auto") == IndexSettings()
    assert IndexSettings(vectors="hnsw").vectors == Hnsw()
    assert IndexSettings(vectors={"kind": "auto", "memory": "2GB"}).vectors.memory == 2_000_000_000
    assert [TypeAdapter(ResolvedVectors).validate_python(name) for name in ("flat", "hnsw")] == [Flat(), Hnsw()]
    settings = IndexSettings(vectors=Hnsw(neighbours=7))
    assert IndexSettings.model_validate_json(settings.model_dump_json()) == settings
    assert IndexSettings.model_validate({**settings.model_dump(), "store": None}) == settings  # of an older index


@pytest.mark.parametrize("wrong", ["hnws", {"kind": "flat", "lists": 3}, "ivf",
                                   {"kind": "hnsw", "codes": "int4"}, {"kind": "auto", "memory": "much"}])
def test_unknown_kinds_and_settings_are_refused(wrong):
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
