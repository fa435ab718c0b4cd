"""Validates autoscalers like the API server: all problems at once, with path and Kubernetes' message."""

from autoscaler.validation.advice import Advice, warnings
from autoscaler.validation.preparation import prepare, without_disabled_fields
from autoscaler.validation.problem import Problem, ProblemKind
from autoscaler.validation.validate import api_server_problems, invalid_object_message, problems

__all__ = [
    "Advice",
    "Problem",
    "ProblemKind",
    "api_server_problems",
    "invalid_object_message",
    "prepare",
    "problems",
    "warnings",
    "without_disabled_fields",
]
