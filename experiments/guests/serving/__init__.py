"""The measured graph as a service: chat completions and responses, a page, threads, feedback, and live experiments."""
