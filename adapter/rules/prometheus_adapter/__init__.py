"""Import of prometheus-adapter configuration files: external rules are served as prometheus-adapter serves them."""
