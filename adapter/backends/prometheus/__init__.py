"""The backend for Prometheus and servers with the same HTTP API: Thanos, Mimir, Cortex, VictoriaMetrics.

prometheus-api-client is synchronous, so it runs in the backend's own threads. Its session is replaced by one that
aborts requests at their deadline, does not retry and translates errors.
"""
