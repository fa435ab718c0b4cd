"""Validation rules of the schema: the rules of `autoscaler.validation` that OpenAPI and CEL can express.

Messages are the same as there. Maximum lengths are required for the API server's cost estimation of CEL rules.
"""

from collections.abc import Mapping
from typing import Any, Final

from autoscaler.defaults import (
    CPU_AT_80_PERCENT,
    FAILURE_DURATION_SECONDS,
    MAX_FAILURE_DURATION_SECONDS,
    SCALE_DOWN,
    SCALE_UP,
)
from autoscaler.types import spec
from autoscaler.validation.metrics import FIELD_OF
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement
from autoscaler.wire.encoding import NOT_OMITTED, encode

_MAX_NAME_LENGTH: Final = 253
_DECIMAL: Final = r"[0-9]+(\.[0-9]*)?|\.[0-9]+"
_POSITIVE_DECIMAL: Final = r"[0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*"


def _quantity_pattern(number: str) -> str:
    return rf"^ *\+?({number})([KMGTPE]i|[numkMGTPE]|[eE][+-]?({_DECIMAL}))? *$"


QUANTITY: Final[Mapping[str, Any]] = {
    # Like an HPA: a number, which need not be an integer, or a string. OpenAPI has no such type, so the field has
    # none, and the constraints exclude the other types.
    "x-kubernetes-preserve-unknown-fields": True,
    "pattern": _quantity_pattern(_DECIMAL),
    "maxLength": 64,
    "minProperties": 1,
    "maxProperties": 0,
    "minItems": 1,
    "maxItems": 0,
    "minimum": 0,
    "not": {"enum": [True, False]},
}
_POSITIVE_QUANTITY: Final = {"pattern": _quantity_pattern(_POSITIVE_DECIMAL), "exclusiveMinimum": True}
_SEGMENT: Final = {"minLength": 1, "maxLength": _MAX_NAME_LENGTH, "pattern": "^[^/%]*$"}
_NOT_DOTS: Final = {"rule": "self != '.' && self != '..'", "message": "may not be '.' or '..'"}
_NAME: Final = {**_SEGMENT, "x-kubernetes-validations": [_NOT_DOTS]}

_NO_SOURCE: Final = "must populate information for the given metric source"
_OTHER_SOURCE: Final = "must populate the given metric source only"


def _required(rule: str, path: str, message: str) -> Mapping[str, str]:
    return {"rule": rule, "fieldPath": path, "reason": "FieldValueRequired", "message": message}


def _forbidden(rule: str, path: str, message: str) -> Mapping[str, str]:
    return {"rule": rule, "fieldPath": path, "reason": "FieldValueForbidden", "message": message}


# Fields without a type are unknown to CEL, so the presence of quantities is required by schemas.
_RAW_OR_UTILIZATION: Final = {"oneOf": [{"required": ["averageUtilization"]}, {"required": ["averageValue"]}]}
_VALUE_OR_AVERAGE: Final = [{"required": ["value"]}, {"required": ["averageValue"]}]

REQUIRED: Final[Mapping[type, tuple[str, ...]]] = {**NOT_OMITTED, spec.Fallback: ("replicas",)}

RULES: Final[Mapping[type, tuple[Mapping[str, str], ...]]] = {
    LabelSelectorRequirement: (
        _required(
            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
            ".values",
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        _forbidden(
            "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
            ".values",
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
    ),
    spec.Metric: (
        *(
            _required(f"self.type != '{kind}' || has(self.{field})", f".{field}", _NO_SOURCE)
            for kind, field in FIELD_OF.items()
        ),
        *(
            _forbidden(f"self.type == '{kind}' || !has(self.{field})", f".{field}", _OTHER_SOURCE)
            for kind, field in FIELD_OF.items()
        ),
    ),
    spec.Spec: (
        {
            "rule": "!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
            "fieldPath": ".maxReplicas",
            "message": "must be greater than or equal to `minReplicas`",
        },
        _forbidden(
            "!has(self.minReplicas) || self.minReplicas > 0 || (has(self.metrics) &&"
            " self.metrics.exists(metric, metric.type in ['Object', 'External']))",
            ".metrics",
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ),
        _forbidden(
            "!has(self.pausedUntil) || (has(self.mode) && self.mode == 'Paused')",
            ".pausedUntil",
            "may only be set together with `mode: Paused`; set that, or remove this",
        ),
    ),
}

CONSTRAINTS: Final[Mapping[tuple[type, str], dict[str, Any]]] = {
    (LabelSelector, "match_labels"): {
        "maxProperties": 64,
        "additionalProperties": {"maxLength": 63, "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"},
    },
    (LabelSelector, "match_expressions"): {"maxItems": 64},
    (LabelSelectorRequirement, "key"): {"minLength": 1, "maxLength": 317},
    (LabelSelectorRequirement, "operator"): {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
    (LabelSelectorRequirement, "values"): {"maxItems": 64, "items": {"maxLength": 63}},
    (spec.ObjectReference, "kind"): _NAME,
    (spec.ObjectReference, "name"): _NAME,
    (spec.ObjectReference, "api_version"): {"maxLength": 317, "pattern": "^[^/]*(/[^/]*)?$"},
    (spec.MetricIdentifier, "name"): _NAME,
    (spec.MetricTarget, "type"): {"enum": ["Utilization", "Value", "AverageValue"]},
    (spec.MetricTarget, "value"): _POSITIVE_QUANTITY,
    (spec.MetricTarget, "average_value"): _POSITIVE_QUANTITY,
    (spec.MetricTarget, "average_utilization"): {"minimum": 1},
    (spec.ResourceSource, "target"): _RAW_OR_UTILIZATION,
    (spec.ContainerResourceSource, "target"): _RAW_OR_UTILIZATION,
    (spec.PodsSource, "target"): {"required": ["type", "averageValue"]},
    (spec.ObjectSource, "target"): {"anyOf": _VALUE_OR_AVERAGE},
    (spec.ExternalSource, "target"): {"oneOf": _VALUE_OR_AVERAGE},
    (spec.ResourceSource, "name"): {"minLength": 1, "maxLength": 317},
    (spec.ContainerResourceSource, "name"): {
        "minLength": 1,
        "maxLength": 317,
        "x-kubernetes-validations": [
            {
                "rule": "self.contains('/') || self in ['cpu', 'memory', 'ephemeral-storage']"
                " || self.startsWith('hugepages-')",
                "message": "must be a standard resource for containers",
            },
            {
                "rule": "!self.contains('/') || self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/"
                "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && !self.startsWith('requests.')",
                "message": "doesn't follow extended resource name standard",
            },
        ],
    },
    (spec.ContainerResourceSource, "container"): {
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    },
    (spec.Fallback, "replicas"): {"minimum": 1},
    (spec.Fallback, "failure_duration_seconds"): {
        "minimum": 180,
        "maximum": MAX_FAILURE_DURATION_SECONDS,
        "default": FAILURE_DURATION_SECONDS,
    },
    (spec.Fallback, "strategy"): {"enum": ["Static", "UseMax", "UseMin"], "default": "Static"},
    (spec.Metric, "type"): {"enum": ["Object", "Pods", "Resource", "ContainerResource", "External"]},
    (spec.Policy, "type"): {"enum": ["Pods", "Percent"]},
    (spec.Policy, "value"): {"minimum": 1},
    (spec.Policy, "period_seconds"): {"minimum": 1, "maximum": 1800},
    (spec.ScalingRules, "stabilization_window_seconds"): {"minimum": 0, "maximum": 3600},
    (spec.ScalingRules, "select_policy"): {"enum": ["Max", "Min", "Disabled"], "default": "Max"},
    (spec.ScalingRules, "policies"): {"minItems": 1, "maxItems": 32},
    (spec.Behavior, "scale_up"): {
        "default": {},
        "properties": {
            "stabilizationWindowSeconds": {"default": 0},
            "policies": {"default": encode(SCALE_UP)["policies"]},
        },
    },
    (spec.Behavior, "scale_down"): {
        "default": {},
        "properties": {"policies": {"default": encode(SCALE_DOWN)["policies"]}},
    },
    (spec.Spec, "scale_target_ref"): {
        "x-kubernetes-validations": [
            {
                "rule": "self.kind == 'ReplicationController' || (has(self.apiVersion)"
                " && self.apiVersion.matches('^[^/]+/'))",
                "fieldPath": ".apiVersion",
                "message": "apiVersion must specify API group",
            }
        ]
    },
    (spec.Spec, "min_replicas"): {"minimum": 0, "default": 1},
    (spec.Spec, "max_replicas"): {"minimum": 1},
    (spec.Spec, "metrics"): {"maxItems": 64, "default": [encode(CPU_AT_80_PERCENT)]},
    (spec.Spec, "mode"): {"enum": ["Active", "DryRun", "Paused"], "default": "Active"},
    (spec.Spec, "paused_until"): {
        # The API server accepts a list as a string with a format unless the number of items excludes it, and more
        # notations of a time than RFC 3339 has.
        "minItems": 1,
        "maxItems": 0,
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$",
    },
}
