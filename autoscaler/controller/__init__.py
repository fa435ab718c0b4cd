"""The loop: when to look at which autoscaler."""
