"""Vectors in Milvus: an embedded file, a server, a cluster or Zilliz, as the kind `milvus` of an index's vectors."""
