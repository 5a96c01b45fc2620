"""People's review of questions: a page on loopback that asks for verdicts, and what these say of the set."""
