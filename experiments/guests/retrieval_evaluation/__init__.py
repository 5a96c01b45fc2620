"""Compare retrievers alone, without a model: `ragbed evaluate-retrieval`, and TREC runs of other programs."""
