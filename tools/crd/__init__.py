"""Makes the CustomResourceDefinition of PodAutoscaler out of the types that the controller decodes it into."""
