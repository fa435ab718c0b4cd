"""RabbitMQ backend: lengths and message rates of queues, from the management API."""
