"""Validates autoscalers like the API server: all problems at once, with path and Kubernetes' message."""

from autoscaler.validation.advice import Advice, warnings
from autoscaler.validation.preparation import prepare
from autoscaler.validation.problem import Problem
from autoscaler.validation.validate import api_server_problems, problems

__all__ = [
    "Advice",
    "Problem",
    "api_server_problems",
    "prepare",
    "problems",
    "warnings",
]
