"""docs/configuration.md, made from the types: every setting, what it means, and what it is if nobody says."""
