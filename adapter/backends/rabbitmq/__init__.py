"""RabbitMQ, by its management API: how long queues are, and how fast messages come and go."""
