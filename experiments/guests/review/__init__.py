"""Review questions in the browser, and report how many labels are wrong and how far reviewers agree."""
