"""NATS JetStream: what consumers have yet to do, and how many messages streams hold."""
