"""Strict decoding of documents into typed records."""
