"""Hostile queries and the reads that send them, through the API server and directly."""

import json
from typing import Final
from urllib.parse import quote

from tests.security.soak.api import METRICS
from tests.security.soak.attacks.attacker import LEAK, Attacker, HostileTenant
from tests.security.soak.tenant import CANARY, KEYWORDS, external_metric

_MODIFIERS: Final = ("on()", "ignoring()", "on() group_left()", "on() group_right()", "bool", "bool on()", "")
_OPERATORS: Final = ("+", "-", "*", "==", "<", "and", "or", "unless", "atan2", "^")
_FORMS: Final = (
    "vector(0) {operator} {modifier} {name}",
    "{name}",
    "{name} offset 1s",
    "sum by (canary) ({name})",
    "max_over_time({name}[1m])",
    "max_over_time({name}[1m:1s])",
    '{{__name__="{name}"}}',
    '{{__name__="{name}",namespace="shop"}}',
    '{{__name__=~".+"}} == 777777',
    "{name} @ end()",
    "vector(0) {operator} {modifier} # )\n {name}",
    'label_replace({name}, "namespace", "x", "", "")',
    "absent({name}) or {name}",
    'count_values("v", {name})',
    "vector(0) {operator} {modifier} ({name})",
    "nan.5 or {name}",
)
_INVALID: Final = (
    "sum(",
    "}{",
    "orders[",
    "\x00",
    "a b",
    "1 +",
    '"',
    "sum by (" + "x," * 3_000,
    "(" * 4_000,
    "-" * 8_000 + "1",
)
_SLOW: Final = (
    "sum_over_time(orders[30d:1s])",
    "max_over_time(sum(rate(orders[5m]))[10d:1s])",
    'count({__name__=~".*.*.*.*.*.*=x"}) or sum_over_time(orders[20d:1s])',
)


async def read(tenant: HostileTenant, name: str, query: str = "") -> tuple[int, bytes]:
    """Read a metric of the tenant's namespace through the API server."""
    return await tenant.api.send("GET", f"{METRICS}/namespaces/{tenant.namespace}/{quote(name)}{query}")


async def escape(attacker: Attacker) -> str:
    """Create a metric whose query names series of another tenant, and read it."""
    pick, tenant = attacker.random.choice, attacker.tenant()
    text = pick(_FORMS).format(operator=pick(_OPERATORS), modifier=pick(_MODIFIERS), name=pick(KEYWORDS))
    name = f"escape-{attacker.random.randrange(20)}"
    item = external_metric(name, backend="main", query=text, interval="5s", onEmpty="zero")
    if await tenant.create("externalmetrics", name, json.dumps(item).encode()) != "stored":
        return "refused by the API server"
    outcome = "not served"
    for _ in range(3):
        await attacker.pause(1)
        status, body = await read(tenant, name)
        if str(CANARY).encode() in body or b'"canary"' in body:
            attacker.count("escaped query", text)
            return LEAK
        outcome = f"read ({status})"
    return outcome


async def query_of_a_kind(attacker: Attacker, kind: str) -> str:
    """Create a metric with a slow or an invalid query and read it often."""
    tenant = attacker.tenant()
    name = f"{kind}-{attacker.random.randrange(60)}"
    deadline = attacker.random.choice(["1ms", "1s", "1s", "2s", "60s"])
    if kind == "slow-http":
        spec = {"backend": "jobs", "parameters": {"path": f"/slow?{attacker.random.random()}", "value": "jobs"}}
    else:
        query = attacker.random.choice(_SLOW if kind == "slow" else _INVALID)
        spec = {"backend": "main", "query": f"{query} # {attacker.random.random()}" if kind == "slow" else query}
    item = external_metric(name, interval=attacker.random.choice(["5s", "5s", "5s", "10ms"]), deadline=deadline, **spec)
    outcome = await tenant.create("externalmetrics", name, json.dumps(item).encode())
    for _ in range(3):
        await attacker.pause(0.5)
        status, _ = await read(tenant, name)
        if outcome == "stored":
            outcome = f"read ({status})"
    return outcome


async def long_selector(attacker: Attacker) -> str:
    """Read with a selector of thousands of keys, directly, as a caller with a valid token."""
    tenant = attacker.tenant()
    first = attacker.random.randrange(10**6)
    keys = attacker.random.choice([10, 1_000, 3_500])
    form = attacker.random.choice(["k{0}", "!k{0}", "k{0}=v{0}", "k{0}!=v"])
    selector = ",".join(form.format(first + number) for number in range(keys))
    path = f"{METRICS}/namespaces/{tenant.namespace}/large-1?labelSelector={quote(selector)[:60_000]}"
    return f"response ({await attacker.get(path, {'Authorization': f'Bearer {tenant.token}'})})"


async def random_token(attacker: Attacker) -> str:
    """Send a request with an invalid token, or without credentials."""
    token = f"{attacker.random.getrandbits(512):x}"
    headers = {"Authorization": f"Bearer {token}"} if attacker.random.random() < 0.7 else {}
    path = attacker.random.choice([f"{METRICS}/namespaces/shop/orders", f"/{token}", "/debug/backends", "/metrics"])
    status = await attacker.get(path, headers)
    return LEAK if status == 200 else f"response ({status})"
