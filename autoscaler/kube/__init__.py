"""How this process speaks with the Kubernetes API; nothing else does."""
