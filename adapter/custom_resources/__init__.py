"""``ExternalMetric`` objects: rules that teams write for their own namespace."""
