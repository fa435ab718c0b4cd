"""Connections to backends: HTTP, TLS, credentials and addresses, shared by several backend kinds."""
