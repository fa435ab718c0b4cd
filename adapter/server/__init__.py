"""The HTTP API: external.metrics.k8s.io, health, metrics and debugging endpoints.

A request passes through ``connection``, ``server``, ``routes`` and a handler; an error becomes a Status in ``status``.
"""
