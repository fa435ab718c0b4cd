"""Go's text/template as far as queries use it, with ``<<`` and ``>>`` round its actions."""
