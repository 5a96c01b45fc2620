"""Compare vectors in Milvus with vectors in the index folder, over the same queries, in one run.

    python bench/stores.py [--vectors 200000]

It runs `bench/vectors.py`, which describes the measurements and the options. FAISS is read from a file. Milvus runs as
its embedded engine, which answers over a loopback socket as a server does.
"""
import vectors

if __name__ == "__main__":
    vectors.main(200_000, "flat,milvus/flat,hnsw,milvus/hnsw")
