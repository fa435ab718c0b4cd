"""Clients of AWS services on aiobotocore."""
