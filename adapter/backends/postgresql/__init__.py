"""PostgreSQL: numbers that a query finds, and cannot change."""
