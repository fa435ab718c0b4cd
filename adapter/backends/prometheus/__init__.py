"""The backend for Prometheus and servers with the same HTTP API: Thanos, Mimir, Cortex, VictoriaMetrics.

prometheus-api-client builds the requests. It is synchronous and returns neither the warnings nor the type of a result,
so the HTTP client of all backends sends the requests, and ``parse.py`` reads the responses.
"""
