"""Everything on one machine, no cluster needed: an API server in memory, and what plays in it."""
