"""Building blocks of the recipes: quotes, critiques, checks of evidence, and the evidence of a nested recipe."""
