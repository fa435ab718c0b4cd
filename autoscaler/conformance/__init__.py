"""Runs cases computed by Kubernetes' own code through ours, and says where the two differ."""
