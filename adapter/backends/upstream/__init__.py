"""Upstream backend: another external metrics server, such as KEDA, the Datadog Cluster Agent, or Steadyscale."""
