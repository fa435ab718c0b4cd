"""Settings for an imported prometheus-adapter configuration file."""

from datetime import timedelta

from adapter.rules.rule import DEFAULT_INTERVAL, Rule
from autoscaler.types.record import Record


class PrometheusAdapterFile(Record, frozen=True):
    """A configuration file of prometheus-adapter whose external metrics are served unchanged."""

    file: str
    """Path of the file: the configuration of prometheus-adapter itself, a manifest of its ConfigMap, or the values of
    its Helm chart. The file is reloaded when it changes."""

    backend: str
    """Name of the configured Prometheus backend that the rules query."""

    relist_interval: timedelta = timedelta(minutes=1)
    """How often the list of series is fetched from Prometheus; prometheus-adapter's ``--metrics-relist-interval``. Only
    needed for rules whose ``seriesQuery`` does not name a single series."""

    max_age: timedelta = timedelta()
    """How far back the list of series reaches; prometheus-adapter's ``--metrics-max-age``. 0: as far as
    ``relistInterval``."""

    strict_discovery: bool = False
    """Serve a metric only while its series exist, as prometheus-adapter does, even if ``seriesQuery`` names the series.
    Disabled by default, so that such metrics are available without waiting for discovery."""

    interval: timedelta = DEFAULT_INTERVAL
    """How often a query is sent while its metric is being read."""

    deadline: timedelta = Rule("").deadline
    """How long Prometheus may take to respond."""

    max_sample_age: timedelta = Rule("").max_sample_age
    """Maximum age of a sample; an older sample is an error."""
