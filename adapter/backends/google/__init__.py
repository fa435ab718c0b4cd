"""Google Cloud Monitoring backend: time series by filter or PromQL."""
