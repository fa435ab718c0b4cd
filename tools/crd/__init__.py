"""Generates the CustomResourceDefinition of PodAutoscaler from the types in autoscaler/types."""
