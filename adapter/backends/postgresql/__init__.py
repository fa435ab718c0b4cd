"""PostgreSQL backend: values from the rows of a read-only SQL query."""
