"""The error of the PromQL modules, under its former name."""

from adapter.rules.promql.errors import PromqlError

__all__ = ["PromqlError"]
