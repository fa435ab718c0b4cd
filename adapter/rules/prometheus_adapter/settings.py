"""How a file of prometheus-adapter is served: what it does not say itself."""

from datetime import timedelta

from adapter.rules.rule import Rule
from autoscaler.types.record import Record


class PrometheusAdapterFile(Record, frozen=True):
    """A configuration file of prometheus-adapter whose external metrics are served as they were."""

    file: str
    """Its own file, a manifest of the ConfigMap that holds it, or its chart's values; read again when it changes."""

    backend: str
    """Which of the configured Prometheus servers its rules are about."""

    relist_interval: timedelta = timedelta(minutes=1)
    """How often Prometheus is asked which series there are: prometheus-adapter's --metrics-relist-interval. Only rules
    whose ``seriesQuery`` names no single series need that."""

    max_age: timedelta = timedelta()
    """How long ago a series may have been heard of: its --metrics-max-age. Nothing: as long as relistInterval."""

    strict_discovery: bool = False
    """Serve a metric only while its series exist, as prometheus-adapter does, even where the file names the series."""

    interval: timedelta = Rule("").interval
    """How long an answer is good for."""

    deadline: timedelta = Rule("").deadline
    """How long Prometheus may take."""

    max_sample_age: timedelta = Rule("").max_sample_age
    """An older number is an error."""
