"""Compare the way from files to an index: ragbed, LangChain, LlamaIndex and Haystack, and parsers alone.

    python bench/files.py --data FOLDER [--html FOLDER] [--pdfs 200] [--pages 2000] [--office 500] [--stand-in]
                          [--only NAME...] [--json]

PDF files: FinanceBench's filings and the Korean papers, cut into pieces of two pages. HTML: CRAG's web pages, the
novels' chapters, and pages from `--html`, such as Rust's documentation. Office: Word, Excel and PowerPoint files that
are made here from SciFact's abstracts, TabFact's tables and HotpotQA's paragraphs.

Every contestant parses, cuts, embeds and stores the files in its own process. Its seconds begin with the start of this
process. All use MiniLM, or with `--stand-in` a hash of the text, and chunks of about 1,000 characters without overlap.
Of PyMuPDF, pymupdf4llm and Docling only the parser runs. Docling gets no PDF files, because its models for them must be
downloaded. `lost` is the share of the words on the page that are in no chunk of the
file, as multisets. An independent program reads the words: `pdftotext -raw` for PDF, lxml for HTML, and the XML of
Office files. Files that a contestant cannot read are not counted in `lost`, but in `unread`. Memory is that of all its
processes.
"""
from __future__ import annotations

import argparse
import bz2
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import unicodedata
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any

SIZE, WORDS, PAGES = 1_000, 160, 2  # characters and words of a chunk; pages of a PDF file
Chunks = dict[str, list[str]]  # by file name


def main() -> None:
    options = _options()
    if options.build:
        print(json.dumps(_build(options)))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pages = _make_files(options, folder / "files")
        print(f"{Counter(name.rpartition('.')[2] for name in pages)}, {sum(pages.values())} pages", file=sys.stderr)
        wanted = {path.name: _words(_read(path)) for path in (folder / "files").iterdir()}
        for name in options.only or CONTESTANTS:
            missing = [one for one in CONTESTANTS[name][1] if not find_spec(one)]
            if missing:
                print(f"{name} takes no part: {', '.join(missing)} not installed")
                continue
            took = _child(name, folder, options.stand_in)
            chunks: Chunks = json.loads((folder / "chunks.json").read_bytes()) if took else {}
            lost, total = Counter[str](), Counter[str]()
            for file in chunks:
                kind = file.rpartition(".")[2]
                total[kind] += wanted[file].total()
                lost[kind] += (wanted[file] - _words("\n".join(chunks[file]))).total()
            clock, count = took.get("clock", float("nan")), sum(map(len, chunks.values()))
            row = {"name": name, **took, "pages/s": sum(pages[file] for file in chunks) / clock,
                   "chunks": count, "chunks/s": count / clock, "unread": len(wanted) - len(chunks),
                   "lost": {kind: round(lost[kind] / max(total[kind], 1), 4) for kind in total}}
            print(json.dumps(row) if options.json else "  ".join(
                f"{key} {value:,.1f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()),
                flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("RAGBED_DATA"))
    parser.add_argument("--html", type=Path, help="a folder with more HTML pages")
    parser.add_argument("--stand-in", action="store_true", help="a hash of the text instead of MiniLM's vector")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS))
    parser.add_argument("--json", action="store_true")
    for name, count in (("--pdfs", 200), ("--pages", 2_000), ("--office", 500)):
        parser.add_argument(name, type=int, default=count)
    for name in ("--build", "--folder", "--begun"):  # of a contestant's own process
        parser.add_argument(name, help=argparse.SUPPRESS)
    return parser.parse_args()


def _make_files(options: argparse.Namespace, out: Path) -> dict[str, int]:
    """Write the files; return the number of pages by file name."""
    out.mkdir()
    makers = ((_pdfs, options.pdfs), (_pages, options.pages), (_office, options.office))
    made = chain.from_iterable(make(options, out, count) for make, count in makers if count)
    return dict(made)


def _pdfs(options: argparse.Namespace, out: Path, count: int) -> Iterator[tuple[str, int]]:
    import pymupdf

    paths = sorted([*options.data.glob("financebench/pdfs/*.pdf"), *options.data.glob("korean_rag/*.pdf")])
    papers = [pymupdf.open(path) for path in paths]
    pieces = [(path, paper, first) for path, paper in zip(paths, papers, strict=True)
              for first in range(0, len(paper), PAGES)]
    for path, paper, first in pieces[::max(len(pieces) // count, 1)][:count]:
        piece = pymupdf.open()
        piece.insert_pdf(paper, from_page=first, to_page=min(first + PAGES, len(paper)) - 1)
        piece.save(out / f"{path.stem}-{first}.pdf", garbage=3, deflate=True)
        yield f"{path.stem}-{first}.pdf", len(piece)


def _pages(options: argparse.Namespace, out: Path, count: int) -> Iterator[tuple[str, int]]:
    rows = map(json.loads, bz2.decompress((options.data / "crag" / "dev_data.jsonl.bz2").read_bytes()).splitlines())
    texts = [found["page_result"].encode() for row in rows for found in row["search_results"] if found["page_result"]]
    texts += [path.read_bytes() for path in sorted((options.data / "novels").rglob("*.*htm*"))]
    more = sorted(options.html.rglob("*.html")) if options.html else []
    rest = max(count - len(texts), 1)
    for number, text in enumerate(islice(chain(texts, (path.read_bytes() for path in more[::len(more) // rest or 1]
                                                       if path.stat().st_size > 3_000)), count)):
        (out / f"page-{number}.html").write_bytes(text)
        yield f"page-{number}.html", 1


def _office(options: argparse.Namespace, out: Path, count: int) -> Iterator[tuple[str, int]]:
    """Three of five are Word files, one Excel, one PowerPoint."""
    import docx
    import openpyxl
    import pptx

    abstracts = map(json.loads, (options.data / "scifact" / "corpus.jsonl").open(encoding="utf-8"))
    tables = iter(json.loads((options.data / "tabfact" / "small_test_tables.json").read_bytes()))
    stories = json.loads((options.data / "hotpotqa" / "hotpotqa_100.json").read_bytes())
    slides = (one for story in stories for one in story["context"])
    for number in range(count):
        name = f"office-{number}.{('docx', 'docx', 'docx', 'xlsx', 'pptx')[number % 5]}"
        if name.endswith("docx"):
            letter = docx.Document()
            for row in islice(abstracts, 6):
                letter.add_heading(row["title"], 1)
                letter.add_paragraph(row["text"])
            letter.save(str(out / name))
        elif name.endswith("xlsx"):
            book = openpyxl.Workbook()
            table = next(tables)
            for line in (table["header"], *table["rows"]):
                book.active.append(line)
            book.save(out / name)
        else:
            show = pptx.Presentation()
            for title, sentences in islice(slides, 8):
                slide = show.slides.add_slide(show.slide_layouts[1])
                slide.shapes.title.text, slide.placeholders[1].text = title, "".join(sentences)
            show.save(str(out / name))
        yield name, 1


def _read(path: Path) -> str:
    """Read the words of a file independently of all contestants."""
    if path.suffix == ".pdf":
        return subprocess.run(["pdftotext", "-raw", path, "-"], capture_output=True, check=True).stdout.decode()
    if path.suffix == ".html":
        from lxml import html

        root = html.document_fromstring(path.read_bytes(), parser=html.HTMLParser(encoding="utf-8"))
        unseen = " or ".join(f"ancestor::{name}" for name in ("script", "style", "noscript", "template", "head"))
        return " ".join(root.xpath(f"//text()[not({unseen})]"))
    with zipfile.ZipFile(path) as parts:
        texts = [parts.read(name).decode() for name in parts.namelist()
                 if re.match(r"word/document|xl/(sharedStrings|worksheets/sheet)|ppt/slides/slide", name)]
    return " ".join(re.sub("<[^>]+>", "", found) for text in texts
                    for found in re.findall(r'<(?:w:|a:)?t(?: [^>]*)?>(.*?)<|<c [^>]*t="n"[^>]*><v>(.*?)<', text)
                    for found in found)


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W_]+", re.sub("[-\u00ad]\n", "", unicodedata.normalize("NFKC", text)).lower()))


def _child(name: str, folder: Path, stand_in: bool) -> dict[str, Any]:
    """Run a contestant in its own process, and watch the memory of all processes of its session."""
    environment = {**os.environ, "RAGBED_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    if name == "ragbed" and not stand_in:  # the model is exported once per machine
        from ragbed.retrieval import Sentence, open_embedder

        os.environ["RAGBED_CACHE"] = environment["RAGBED_CACHE"]
        open_embedder(Sentence()).embed_queries(["export"])
    command = [sys.executable, "-W", "ignore", __file__, "--build", name, "--folder", str(folder), "--begun",
               str(time.time()), *["--stand-in"] * stand_in]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, start_new_session=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _memory(process.pid))
        time.sleep(0.25)
    if process.returncode:
        print(f"{name} fails: {(folder / 'err').read_text().strip().splitlines()[-1]}", file=sys.stderr)
        return {}
    return {**json.loads((folder / "out").read_text().splitlines()[-1]), "MB": round(peak / 1e6)}


def _memory(session: int) -> int:
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[3]) == session:
                total += int(re.findall(r"Pss: +(\d+)", stat.with_name("smaps_rollup").read_text())[0]) * 1_024
        except (OSError, IndexError):
            continue  # it has ended
    return total


def _build(options: argparse.Namespace) -> dict[str, float]:
    folder = Path(options.folder)
    files = sorted((folder / "files").iterdir())
    made = CONTESTANTS[options.build][0](files, folder, options.stand_in)
    clock = time.time() - float(options.begun)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    chunks = made() if callable(made) else made
    (folder / "chunks.json").write_text(json.dumps(chunks), encoding="utf-8")
    return {"clock": clock, "processor": sum(one.ru_utime + one.ru_stime for one in used)}


def ragbed(files: Sequence[Path], folder: Path, stand_in: bool) -> Callable[[], Chunks]:
    """Do what `ragbed index` does, its estimate included."""
    from ragbed.retrieval import Index, build_index

    build_index([folder / "files"], folder / "ragbed", embedder=_Hashed() if stand_in else None,
                on_estimate=lambda estimate: None)

    def chunks() -> Chunks:
        index, found = Index.open(folder / "ragbed", _Hashed() if stand_in else None), defaultdict(list)
        for chunk in index.chunks:
            found[index.source_of(chunk.document)].append(chunk.content)
        return found

    return chunks


class _Hashed:
    """An embedder for `--stand-in`, also as LangChain calls it."""

    name, identity, dimension, window = "hashed", "hashed-1", 384, 256

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[tuple[int, int]]]:
        return [[(0, len(text))] for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> Any:
        import numpy as np

        vectors = np.stack([np.frombuffer(sha256(text.encode()).digest() * 12, np.uint8) for text in texts])
        vectors = vectors.astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_queries = embed_passages

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.embed_passages(texts).tolist()
        return vectors


def _model() -> str:
    from ragbed.retrieval import find_model
    from ragbed.retrieval.model_files import MINILM

    return str(find_model(MINILM).path)


def langchain(files: Sequence[Path], folder: Path, stand_in: bool) -> Chunks:
    """Loaders of langchain-community, FAISS. It reads Excel and PowerPoint by the package unstructured only."""
    from langchain_community.document_loaders import BSHTMLLoader, Docx2txtLoader, PyMuPDFLoader
    from langchain_community.vectorstores import FAISS
    from langchain_huggingface import HuggingFaceEmbeddings
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    loaders: dict[str, Any] = {".pdf": PyMuPDFLoader, ".docx": Docx2txtLoader, ".html": BSHTMLLoader}
    pages = [page for file in files if file.suffix in loaders for page in loaders[file.suffix](str(file)).load()]
    chunks = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=0).split_documents(pages)
    embeddings: Any = _Hashed() if stand_in else HuggingFaceEmbeddings(model_name=_model())
    store = FAISS.from_embeddings(zip(texts := [chunk.page_content for chunk in chunks],
                                      embeddings.embed_documents(texts), strict=True), embeddings,
                                  [chunk.metadata for chunk in chunks])
    store.save_local(str(folder / "langchain"))
    return _by_file((Path(chunk.metadata["source"]).name, chunk.page_content) for chunk in chunks)


def haystack(files: Sequence[Path], folder: Path, stand_in: bool) -> Chunks:
    """Converters of haystack-ai and its store in memory, saved."""
    from haystack.components.converters import (
        DOCXToDocument,
        HTMLToDocument,
        PPTXToDocument,
        PyPDFToDocument,
        XLSXToDocument,
    )
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.document_stores.types import DuplicatePolicy
    from haystack_integrations.components.embedders.sentence_transformers import SentenceTransformersDocumentEmbedder

    converters: dict[str, Any] = {".pdf": PyPDFToDocument(), ".html": HTMLToDocument(), ".docx": DOCXToDocument(),
                                  ".xlsx": XLSXToDocument(), ".pptx": PPTXToDocument()}
    documents = [document for suffix, converter in converters.items()
                 for document in converter.run([file for file in files if file.suffix == suffix])["documents"]]
    splitter = DocumentSplitter(split_by="word", split_length=WORDS, split_overlap=0)
    chunks = splitter.run([document for document in documents if document.content])["documents"]
    if stand_in:
        vectors = _Hashed().embed_documents([chunk.content for chunk in chunks])
        chunks = [replace(chunk, embedding=vector) for chunk, vector in zip(chunks, vectors, strict=True)]
    else:
        embedder = SentenceTransformersDocumentEmbedder(_model(), progress_bar=False, local_files_only=True)
        embedder.warm_up()
        chunks = embedder.run(chunks)["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(chunks, DuplicatePolicy.OVERWRITE)
    store.save_to_disk(str(folder / "haystack.json"))
    return _by_file((chunk.meta["file_path"], chunk.content) for chunk in chunks)


def llamaindex(files: Sequence[Path], folder: Path, stand_in: bool) -> Chunks:
    """Readers of llama-index-readers-file, FAISS."""
    import faiss
    from llama_index.core import Settings, SimpleDirectoryReader, StorageContext, VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import MetadataMode
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.readers.file import HTMLTagReader, PyMuPDFReader
    from llama_index.vector_stores.faiss import FaissVectorStore

    class Hashed(BaseEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return _Hashed().embed_documents(texts)

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    Settings.embed_model = Hashed() if stand_in else HuggingFaceEmbedding(_model(), device="cpu")
    readers: Any = {".pdf": PyMuPDFReader(), ".html": HTMLTagReader(tag="body")}
    documents = SimpleDirectoryReader(input_files=files, file_extractor=readers).load_data()
    nodes = SentenceSplitter(chunk_size=SIZE // 4, chunk_overlap=0).get_nodes_from_documents(documents)
    storage = StorageContext.from_defaults(vector_store=FaissVectorStore(faiss.IndexFlatIP(384)))
    VectorStoreIndex(nodes, storage_context=storage).storage_context.persist(str(folder / "llamaindex"))
    return _by_file((Path(node.metadata["file_path"]).name, node.get_content(MetadataMode.NONE)) for node in nodes)


def pymupdf(files: Sequence[Path], folder: Path, stand_in: bool) -> Chunks:
    import pymupdf

    return {file.name: [page.get_text() for page in pymupdf.open(file)] for file in files if file.suffix == ".pdf"}


def pymupdf4llm(files: Sequence[Path], folder: Path, stand_in: bool) -> Chunks:
    import pymupdf4llm

    return {file.name: [pymupdf4llm.to_markdown(str(file), show_progress=False)] for file in files
            if file.suffix == ".pdf"}


def docling(files: Sequence[Path], folder: Path, stand_in: bool) -> Chunks:
    from docling.document_converter import DocumentConverter

    found = DocumentConverter().convert_all([file for file in files if file.suffix != ".pdf"], raises_on_error=False)
    return {one.input.file.name: [one.document.export_to_markdown()] for one in found if one.document}


def _by_file(pairs: Iterable[tuple[str, str]]) -> Chunks:
    chunks: Chunks = {}
    for name, text in pairs:
        chunks.setdefault(name, []).append(text)
    return chunks


CONTESTANTS: dict[str, tuple[Callable[[Sequence[Path], Path, bool], Any], tuple[str, ...]]] = {
    "ragbed": (ragbed, ()), "pymupdf": (pymupdf, ("pymupdf",)), "pymupdf4llm": (pymupdf4llm, ("pymupdf4llm",)),
    "docling": (docling, ("docling",)),
    "langchain": (langchain, ("langchain_community", "langchain_huggingface", "docx2txt")),
    "llamaindex": (llamaindex, ("llama_index.readers.file", "llama_index.embeddings.huggingface",
                                "llama_index.vector_stores.faiss")),
    "haystack": (haystack, ("haystack_integrations", "trafilatura"))}

if __name__ == "__main__":
    main()
