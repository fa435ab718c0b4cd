"""The error of a host name that does not resolve names the host, for every backend kind."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from adapter.backends.configuration import BackendEntry, backend_kinds
from adapter.backends.loader import create_backend, missing_modules
from adapter.decoding import documents
from adapter.errors import BackendUnreachable
from adapter.rules.query_builder import Query
from tests.fakes.backend import loop_clock

HOST: Final = "unknown-host.invalid"
KEY: Final = "KEY_FILE"
URL: Final = {"url": f"http://{HOST}"}
LOGIN: Final = {"method": "clientSecret", "tenantId": "t", "clientId": "c", "clientSecretFile": KEY}
RESOURCE: Final = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/n"
)
BACKENDS: Final[dict[str, tuple[dict[str, Any], str | dict[str, object]]]] = {
    "prometheus": (URL, "up"),
    "http": (URL, {}),
    "upstream": (URL, {"namespace": "shop", "metric": "queue"}),
    "rabbitmq": (URL, {"queue": "orders"}),
    "postgresql": ({"host": HOST, "database": "d", "username": "u"}, {"query": "select 1"}),
    "datadog": ({"url": f"https://{HOST}", "apiKeyFile": KEY, "applicationKeyFile": KEY}, {"query": "avg:a{*}"}),
    "newrelic": ({"url": f"https://{HOST}", "account": 1, "apiKeyFile": KEY}, {"query": "SELECT count(*) FROM A"}),
    "azure": (
        {"url": f"https://{HOST}", "authority": f"https://{HOST}", "audience": "https://a", "login": LOGIN},
        {"metric": "m", "resource": RESOURCE},
    ),
    "cloudwatch": ({"endpointUrl": f"http://{HOST}"}, {"namespace": "n", "metric": "m"}),
    "sqs": ({"endpointUrl": f"http://{HOST}"}, {"queue": "orders"}),
    "redis": ({"addresses": [HOST]}, {"key": "orders"}),
    "nats": ({"addresses": [HOST]}, {"stream": "orders"}),
    "kafka": ({"bootstrapServers": [HOST]}, {"group": "g", "topics": ["orders"]}),
}
NOT_TESTED: Final = {"google"}
"""The requests of google have the HTTP client of the others, after a login that needs a key."""


@pytest.mark.parametrize("kind", backend_kinds())
async def test_unresolved_host_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind in NOT_TESTED:
        return
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    key = tmp_path / "key"
    key.write_text("some-key")
    settings, query = BACKENDS[kind]
    document = json.loads(json.dumps({kind: settings}).replace(KEY, str(key)))
    entry = documents.decode(document, BackendEntry)
    if missing := missing_modules(entry.settings):
        pytest.skip(missing)
    backend = create_backend("main", entry.settings, loop_clock)
    try:
        with pytest.raises(BackendUnreachable, match=f"host name '{HOST}' does not resolve"):
            await backend.fetch(
                Query("main", query if isinstance(query, str) else json.dumps(query)), timedelta(seconds=30)
            )
    finally:
        await backend.aclose()
