"""The autoscaler: what it is, what it thinks, what it does. Usable without the adapter."""
