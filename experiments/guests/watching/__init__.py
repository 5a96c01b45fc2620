"""Read and follow runs that have not finished, and pause them or change their concurrency."""
