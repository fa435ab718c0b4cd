"""Reading metrics: from a metric name to samples, through rules, queries and snapshots."""
