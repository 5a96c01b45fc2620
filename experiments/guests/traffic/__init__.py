"""Store a server's traffic, feedback and A/B tests, and read them as runs and as questions."""
