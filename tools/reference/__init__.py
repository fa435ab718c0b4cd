"""Generator of ``docs/configuration.md``: every setting with its default and description, from the records."""
