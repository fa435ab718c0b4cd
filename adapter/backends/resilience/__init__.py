"""Deadlines, circuit breaking, rate limits, batching and quarantine for all backends."""
