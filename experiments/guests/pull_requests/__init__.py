"""`ragbed gate`: compare a branch with the main branch, and write the verdict for its pull request."""
