"""Who may see what: a rule on documents and keys, and a test that looks for leaks."""
