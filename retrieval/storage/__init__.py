"""Storage: folders replaced atomically, file hashes, Parquet tables, manifests, and the cache of embeddings."""
