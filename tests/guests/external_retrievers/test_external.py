"""One's own retriever: loaded from a file or package, checked, and told apart by its code."""

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from ragbed.documents import CallError, Chunk, SettingsError
from ragbed.retrieval import RerankerDeps, RetrieverSettings

READ = TypeAdapter(RetrieverSettings)
TEXTS = ["Oslo is the capital of Norway.", "Rome is the capital of Italy.", "Crabs live on the northern reef."]


class Chunks:
    """A collection of three chunks."""

    content, embedder = "chunks", None
    chunks = tuple(Chunk(f"c{at}", f"d{at}", "plain", 0, len(text), text) for at, text in enumerate(TEXTS))

    def __init__(self, *among):
        self.among = np.array(among) if among else None


LANGCHAIN = """
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from ragbed.experiments.guests.external_retrievers import as_documents


def make(chunks, size=8):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=size))
    store.add_documents(as_documents(chunks))
    return store.as_retriever()
"""

OURS = """
from dataclasses import dataclass

from ragbed.documents.types import Chunk
from ragbed.retrieval.types import Hit


@dataclass
class Letters:
    chunks: list[Chunk]
    letter: str

    def search(self, queries, k):
        order = sorted(self.chunks, key=lambda chunk: -chunk.content.count(self.letter))
        return [[Hit(chunk, chunk.content.count(self.letter), 0, "letters") for chunk in order[:k]] for _ in queries]


def make(chunks, letter="e"):
    return Letters(chunks, letter)
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(code, name="mine.py"):
        (tmp_path / name).write_text(code)
        return READ.validate_python({"kind": "external", "factory": f"{name}:make"})
    return write


def found(settings, collection=None, k=5, **options):
    settings = settings.model_copy(update={"options": options}) if options else settings
    return [(hit.chunk.id, hit.score, hit.rank, hit.found_by)
            for hit in settings.open(collection or Chunks(), RerankerDeps()).search(["reef"], k)[0]]


def test_a_retriever_of_langchains_is_searched(write):
    settings = write(LANGCHAIN)
    hits, = settings.open(Chunks(), RerankerDeps()).search([TEXTS[1]], 2)
    assert (hits[0].chunk.id, hits[0].score, hits[0].rank, hits[0].found_by) == ("c1", 1.0, 1, "external")
    assert len(hits) == 2


def test_a_retriever_in_the_form_of_ours_is_searched_with_its_options(write):
    settings = write(OURS)
    assert found(settings) == [("c2", 5.0, 1, "external"), ("c1", 2.0, 2, "external"), ("c0", 1.0, 3, "external")]
    assert found(settings, k=1, letter="a") == [("c0", 3.0, 1, "external")]
    assert settings.open(Chunks(), RerankerDeps()).search([], 3) == []
    assert settings.open(Chunks(), RerankerDeps()).search(["?"], 0) == [[]]


def test_it_is_given_only_what_may_be_found_and_nothing_where_that_is_nothing(write):
    assert [id for id, *_ in found(write(OURS), Chunks(True, True, False))] == ["c1", "c0"]
    assert found(write("def make(chunks): 1 / 0"), Chunks(False, False, False)) == []


def test_it_composes_with_the_others(write):
    write(OURS)
    fused = READ.validate_python({"kind": "fused", "method": "reciprocal_rank", "of": [
        {"kind": "external", "factory": "mine.py:make"},
        {"kind": "external", "factory": "mine.py:make", "options": {"letter": "a"}}]})
    assert found(fused)[0] == ("c2", 1 / 61 + 1 / 63, 1, "fused(external[1] 1, external[2] 3)")


def test_a_factory_of_a_package_is_named_by_its_module(write, tmp_path, monkeypatch):
    write(OURS, "letters_of_mine.py")
    monkeypatch.syspath_prepend(tmp_path)
    settings = READ.validate_python({"kind": "external", "factory": "letters_of_mine:make"})
    assert found(settings)[0][0] == "c2"
    assert settings.identity() == write(OURS).identity()


@pytest.mark.parametrize(("code", "complaint"), [
    ("def make(chunks): 1 / 0", "mine.py:make: mine.py:1: ZeroDivisionError: division by zero"),
    ("def make(chunks: 3", "mine.py:1: '(' was never closed"), ("raise SystemExit(3)", "SystemExit: 3"),
    ("raise __import__('asyncio').CancelledError", "CancelledError"), ("raise BaseException('x')", "BaseException: x"),
    ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
    ("def other(chunks): pass\nmake = 3", "no function make; the functions are: other"),
    ("def make(): pass", "TypeError: make"),
    ("def make(chunks): return None", "it returned NoneType; let it return"),
    ("class Bad(Exception):\n    def __str__(self): 1 / 0\ndef make(chunks): raise Bad", "Bad: <exception str() f"),
    ("class Mine:\n    @property\n    def search(self): 1 / 0\ndef make(chunks): return Mine()", "ZeroDivisionError"),
    ("def make(chunks): raise ValueError('two\\nlines')", "ValueError: two lines"),
    (LANGCHAIN.replace(".as_retriever()", ""), "it returned InMemoryVectorStore"),
])
def test_a_factory_that_fails_says_so_in_one_line(write, code, complaint):
    with pytest.raises(SettingsError) as error:
        write(code).open(Chunks(), RerankerDeps())
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


HIT = "from ragbed.documents.types import Chunk\nfrom ragbed.retrieval.types import Hit\n"


@pytest.mark.parametrize(("search", "complaint"), [
    ("None", "did not return a list of hits per query"), ("[]", "did not return a list of hits per query"),
    ("[[1]]", "did not return a list of hits per query"), ("[[], []]", "did not return a list of hits per query"),
    ("[[Hit(self.chunks[0], float('nan'), 1, 'x')]]", "the score nan is not a number"),
    ("[[Hit(self.chunks[0], 10 ** 400, 1, 'x')]]", "is not a number"),
    ("[[Hit(self.chunks[0], 10 ** 5_000, 1, 'x')]]", "ValueError: "),
    ("[[Hit(self.chunks[0], True, 1, 'x')]]", "the score True is not a number"),
    ("[[Hit(Chunk(['c1'], 'z', 'plain', 0, 1, 'z'), 1.0, 1, 'x')]]", "did not return a list of hits per query"),
    ("[[Hit(self.chunks[0], 'high', 1, 'x')]]", "the score 'high' is not a number"),
    ("[[Hit(Chunk('z', 'z', 'plain', 0, 1, 'z'), 1.0, 1, 'x')]]", "it returned a chunk that it was not given"),
    ("queries[5]", "IndexError: list index out of range"),
    ("(_ for _ in ()).throw(__import__('asyncio').CancelledError)", "CancelledError"),
])
def test_what_is_found_is_checked(write, search, complaint):
    settings = write(f"{HIT}class Mine:\n    def __init__(self, chunks): self.chunks = chunks\n"
                     f"    def search(self, queries, k): return {search}\nmake = Mine\n")
    with pytest.raises((SettingsError, CallError), match=r"external mine.py:make: ") as error:
        settings.open(Chunks(), RerankerDeps()).search(["?"], 3)
    assert complaint in str(error.value)


def test_what_it_prints_leaves_stdout_to_results(write, capsys):
    code = OURS.replace("return Letters(", "print('made'); return Letters(")
    assert found(write(code.replace("order = ", "print('asked'); order = ")))[0][0] == "c2"
    print("result")
    assert capsys.readouterr() == ("result\n", "made\nasked\n")


def test_a_chunk_is_the_collections_own_whatever_was_changed_on_it(write):
    settings = write(f"{HIT}class Mine:\n    def __init__(self, chunks): pass\n    def search(self, queries, k):\n"
                     "        return [[Hit(Chunk('c1', 'x', 'plain', 0, 1, 'other'), 1, 1, 'x')] * 2]\nmake = Mine\n")
    hits, = settings.open(Chunks(), RerankerDeps()).search(["?"], 3)
    assert [hit.chunk for hit in hits] == [Chunks.chunks[1]]


@pytest.mark.parametrize("factory", ["", "mine.py", ":make", "mine.py:", "mine.py:ma ke", "mi\0ne.py:make", 3])
def test_a_name_that_is_no_factorys_is_refused(factory):
    with pytest.raises(ValidationError):
        READ.validate_python({"kind": "external", "factory": factory})


@pytest.mark.parametrize(("factory", "complaint"), [
    ("gone.py:make", "gone.py is not a file"), ("nothing_like_it:make", "module nothing_like_it was not found"),
    ("nothing.like.it:make", "No module named 'nothing'"), (".:make", "external .:make: ")])
def test_a_factory_that_is_not_there_says_so(tmp_path, monkeypatch, factory, complaint):
    monkeypatch.chdir(tmp_path)
    settings = READ.validate_python({"kind": "external", "factory": factory})
    with pytest.raises(SettingsError):
        settings.open(Chunks(), RerankerDeps())
    with pytest.raises(SettingsError) as error:
        settings.identity()
    assert complaint in str(error.value) or "cannot be read" in str(error.value)


def test_the_identity_is_of_the_code_and_the_options_wherever_the_file_is(write):
    first = write(OURS).identity()
    assert write(OURS, "elsewhere.py").identity() == first
    assert write(OURS + "\n").identity() != first
    again = write(OURS)
    assert again.identity() == first
    assert again.model_copy(update={"options": {"letter": "a"}}).identity() != first


def test_a_changed_file_is_run_again_and_an_unchanged_one_is_not(write):
    code = OURS + "\nwith open('runs', 'a') as file:\n    file.write('x')\n"
    for changed in (code, code, code.replace("'x'", "'y'")):
        found(write(changed))
    with open("runs") as file:
        assert file.read() == "xy"
