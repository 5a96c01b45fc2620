"""Run a command as shards in several processes or on several machines, and merge the results.

Adds `--launcher` and `ragbed merge`. A shard itself belongs to the core: `ragbed.documents.shards.Shard`.
"""
