"""Words of texts, and the chunks that hold them."""
