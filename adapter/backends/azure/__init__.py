"""Azure Monitor backend: metrics of Azure resources, up to 50 resources in one request."""
