"""Attacks of tenants and callers as tests."""
