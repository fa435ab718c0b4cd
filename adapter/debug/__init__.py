"""Read-only views of decisions, rules and metric reads, for the debugging page and the command line."""
