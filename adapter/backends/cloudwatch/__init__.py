"""Amazon CloudWatch: metrics, metric math, searches and Metrics Insights, hundreds of rules in one call."""
