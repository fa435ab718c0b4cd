"""Amazon SQS backend: numbers of visible, in-flight and delayed messages of one or many queues."""
