"""A soak of hostile tenants against one Steadyscale process with the memory limit of its manifest."""
