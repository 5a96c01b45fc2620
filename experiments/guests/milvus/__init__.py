"""Store the vectors of an index in Milvus (`vectors: milvus`): in an embedded file, a server, a cluster or Zilliz."""
