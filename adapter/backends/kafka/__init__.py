"""Kafka: how far consumer groups are behind, by topic or by partition."""
