"""Redis backend: sizes of lists, streams, sets and hashes, and the backlog of consumer groups."""
