"""Delegated authentication and authorization, as in Kubernetes' extension API servers."""
