"""Grade short answers by their words, numbers, dates and units: the judge `lexical`."""
