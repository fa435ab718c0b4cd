"""Kubernetes value types: quantities, selectors, names, and Go arithmetic."""
