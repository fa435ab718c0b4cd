"""What is wrong with an autoscaler: every problem at once, each with its path and Kubernetes' words."""

from autoscaler.validation.advice import Advice, warnings
from autoscaler.validation.preparation import prepared, without_disabled_fields
from autoscaler.validation.problem import Kind, Problem
from autoscaler.validation.validate import as_api_server_lists_them, problems, refusal

__all__ = [
    "Advice",
    "Kind",
    "Problem",
    "as_api_server_lists_them",
    "prepared",
    "problems",
    "refusal",
    "warnings",
    "without_disabled_fields",
]
