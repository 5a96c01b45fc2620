"""A benchmark of prompt injection. It pairs poisoned pages with clean twins, and measures how many attacks succeed."""
