"""The names of what we serve. Everything that says ``v1beta1`` says it through here."""

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{GROUP_VERSION}"
LIST_KIND = "ExternalMetricValueList"
