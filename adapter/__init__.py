"""The process: serves external.metrics.k8s.io and owns the metric systems."""
