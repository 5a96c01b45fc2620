"""A benchmark of prompt injection: poisoned pages with clean twins, and the share of attacks that succeed."""
