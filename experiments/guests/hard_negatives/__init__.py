"""Hard negatives: mined for a benchmark, kept apart from false negatives, and analysed by dose."""
