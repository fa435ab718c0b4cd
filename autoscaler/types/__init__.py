"""Immutable data types of the autoscaler: spec, status, observation, history, decision and its steps."""
