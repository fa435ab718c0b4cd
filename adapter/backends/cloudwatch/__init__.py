"""Amazon CloudWatch backend: metrics, metric math, searches and Metrics Insights, up to 500 queries in one request."""
