"""An in-memory Kubernetes API server, shared by the demo and the tests."""
