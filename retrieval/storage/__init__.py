"""Things kept on disk: folders that are replaced whole, hashes, tables, manifests, vectors by text."""
