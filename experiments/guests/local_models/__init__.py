"""Models that run on this machine: a catalogue with hashes, downloads, and llama.cpp's server in a child process.

Adds the forms `gguf:PATH`, `hf:OWNER/REPO/FILE.gguf` and the catalogue's names, and `ragbed models list` and `pull`.
"""
