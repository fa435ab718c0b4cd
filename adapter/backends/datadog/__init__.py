"""Datadog backend: metric queries and formulas, with the queries of many rules in one request."""
