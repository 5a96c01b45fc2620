"""Build benchmarks from documents: with the methods of five papers, and one whose answers a program computes."""
