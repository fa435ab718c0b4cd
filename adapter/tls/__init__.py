"""The serving certificate, and the TLS settings of the listener."""
