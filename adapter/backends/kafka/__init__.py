"""Kafka backend: the lag of consumer groups, per topic, partition or group."""
