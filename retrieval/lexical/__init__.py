"""Search by words: tokens of texts, and postings of the chunks that contain them."""
