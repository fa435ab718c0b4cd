"""The demo: the real service with an in-memory Kubernetes API and a simulated order queue."""
