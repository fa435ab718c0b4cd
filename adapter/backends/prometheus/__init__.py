"""Prometheus and whatever answers as it does: Thanos, Mimir, Cortex, VictoriaMetrics.

``backend`` is the door; behind it prometheus-api-client runs in threads of its own, with a deadline that ends both the
wait and the connection, without its retries, and with every failure told by its class.
"""
