"""Check whether evidence suffices for an answer, and whether cited documents support its sentences."""
