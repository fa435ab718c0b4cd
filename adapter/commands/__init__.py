"""What ``steadyscale`` does besides serving: check manifests, and ask the running service."""
