"""Faults between the processes and the API server."""
