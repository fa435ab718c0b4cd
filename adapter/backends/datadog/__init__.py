"""Datadog: the newest points of metric queries, those of many rules by one call."""
