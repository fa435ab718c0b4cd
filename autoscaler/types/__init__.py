"""Plain immutable data: what the user asked for, what is true, what was, what we conclude."""
