"""Vectors in Milvus beside vectors in the index folder, over the same queries, in one run.

    python bench/stores.py [--vectors 200000]

It is `bench/vectors.py`, which says what is measured, and takes its options. FAISS is read from a file; Milvus is its
embedded engine, which answers over a socket on loopback as a server does.
"""
import vectors

if __name__ == "__main__":
    vectors.main(200_000, "flat,milvus/flat,hnsw,milvus/hnsw")
