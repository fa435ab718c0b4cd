"""What a metric name means. Pure: no clock, no network."""
