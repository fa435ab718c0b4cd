"""Group, version and kinds of the served API."""

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{GROUP_VERSION}"
LIST_KIND = "ExternalMetricValueList"
