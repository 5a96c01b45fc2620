"""Search by words: split texts into tokens, and keep postings of the chunks that contain them."""
