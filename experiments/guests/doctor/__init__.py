"""Check a model server: `ragbed doctor`, and the context that Ollama gives a model."""
