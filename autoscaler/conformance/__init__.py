"""Conformance tests: run cases computed by Kubernetes' own code, and report the differences."""
