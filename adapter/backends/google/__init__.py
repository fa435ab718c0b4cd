"""Google Cloud Monitoring: time series by a filter, or by PromQL."""
