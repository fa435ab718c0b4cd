"""Azure Monitor: the metrics of resources, up to fifty of them in one call."""
