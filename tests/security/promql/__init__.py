"""Generated PromQL queries, and the parsers of Prometheus and VictoriaMetrics."""
