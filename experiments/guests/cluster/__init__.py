"""Run a command as shards in several processes or on several machines, and merge the results.

Adds `--launcher` and `ragbed merge`. The core defines shards: `ragbed.documents.shards.Shard`."""
