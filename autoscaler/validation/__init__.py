"""Validates autoscalers like the API server: all problems at once, with path and Kubernetes' message."""

from autoscaler.validation.advice import Advice, warnings
from autoscaler.validation.document import document_problems, is_within, metadata_problems
from autoscaler.validation.preparation import prepare
from autoscaler.validation.problem import ValidationProblem
from autoscaler.validation.validate import api_server_problems, problems, stored_problems

__all__ = [
    "Advice",
    "ValidationProblem",
    "api_server_problems",
    "document_problems",
    "is_within",
    "metadata_problems",
    "prepare",
    "problems",
    "stored_problems",
    "warnings",
]
