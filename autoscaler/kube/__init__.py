"""All communication with the Kubernetes API: requests, informers, leader election, events."""
