"""The Steadyscale service: serves external.metrics.k8s.io and runs the autoscaler."""
