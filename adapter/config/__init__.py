"""The configuration: its model and how it is loaded and reloaded."""
