"""A number in JSON, XML or text at a URL: for whatever has no backend of its own."""
