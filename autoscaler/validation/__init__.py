"""What is wrong with an autoscaler: every problem at once, each with its path and Kubernetes' words."""
