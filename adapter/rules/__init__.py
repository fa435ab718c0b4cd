"""Rules: the mapping of metric names to backend queries. Pure code: no clock, no network."""
