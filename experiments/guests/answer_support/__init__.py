"""Check which sentences of an answer its cited passages support, and which facts the answer contains."""
