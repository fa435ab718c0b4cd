"""Clients of metric systems, one package for each backend kind. No other code connects to a metric system."""
