"""TREC runs: rankings of documents in files that any evaluation program reads."""
