"""Hard negatives: mine them for a benchmark, reject false negatives, and analyse answers by dose."""
