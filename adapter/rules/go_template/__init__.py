"""The subset of Go's text/template that prometheus-adapter queries use, with the delimiters ``<<`` and ``>>``."""
