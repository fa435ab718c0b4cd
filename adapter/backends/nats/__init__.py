"""NATS JetStream backend: the backlog of consumers and the number of messages in streams."""
