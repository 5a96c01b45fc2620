"""Run a server in production: logs, health, metrics, traces, fallback, cache, spending limits."""
