"""Tests of the PostgreSQL backend beyond the contract of all backends."""

import asyncio
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapter.config.loading import decode
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BackendError
from adapter.process import clock
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import OpenBackend, configuration_for, open_backend
from tests.backends.contract import Json
from tests.backends.peers.postgresql import Peer
from tests.control_plane.certificates import Authority
from tests.waiting import GIVE_UP

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("no_resource_leaks"),
    pytest.mark.parametrize("running_peer", [pytest.param(Peer, id="postgresql")], indirect=True, scope="session"),
]


async def fetch(peer: Peer, query: str, **more: object) -> tuple[RawSample, ...]:
    async with open_backend(peer) as opened:
        return await opened.fetch({"query": query, **more})


async def failure(opened: OpenBackend, query: str, seconds: float | None = None) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.fetch({"query": query}, seconds)
    return caught.value.failure, caught.value.message


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + GIVE_UP
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def active_queries(peer: Peer) -> int:
    """Return the number of queries of the reader that the server is running."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active'"
    return int(peer.server.run(query))


# ---- rows and columns


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("7::smallint", 7),
        ("2^40::bigint", 2.0**40),
        ("0.1::real", pytest.approx(0.1)),
        ("1.25::numeric", 1.25),
        ("-3", -3),
        ("'NaN'::numeric", math.nan),
        ("NULL::bigint", math.nan),
        ("(SELECT sum(depth) FROM depths WHERE queue = 'missing')", math.nan),
        ("'Infinity'::float8", math.inf),
        ("1e400::numeric", math.inf),
    ],
)
async def test_numeric_types_are_converted_and_null_is_nan(peer: Peer, number: str, value: float) -> None:
    (sample,) = await fetch(peer, f"SELECT {number} AS n")
    assert sample.labels == {}
    assert sample.value == value or (math.isnan(sample.value) and math.isnan(value))


async def test_each_row_is_a_series_with_the_other_columns_as_labels(peer: Peer) -> None:
    samples = await fetch(
        peer,
        """-- task jobs by queue and priority
        (VALUES ('orders', true, 1, 3.5), ('größe "x"', false, 2, 4), (NULL, NULL, 3, NULL))""",
        value="column4",
    )
    assert [dict(sample.labels) for sample in samples] == [
        {"column1": "orders", "column2": "true", "column3": "1"},
        {"column1": 'größe "x"', "column2": "false", "column3": "2"},
        {"column3": "3"},
    ]
    assert [sample.value for sample in samples[:2]] == [3.5, 4]


async def test_columns_can_be_selected(peer: Peer) -> None:
    query = "SELECT 'a' AS x, 'b' AS y, 5 AS n, now() - interval '1 minute' AS since, 1 AS value"
    (sample,) = await fetch(peer, query, value="n", labels=["y"], timestamp="since")
    assert (sample.value, dict(sample.labels)) == (5, {"y": "b"})
    assert timedelta(seconds=50) < clock() - sample.at < timedelta(seconds=70)
    (sample,) = await fetch(peer, query, timestamp="since")
    assert (sample.value, dict(sample.labels)) == (1, {"x": "a", "y": "b", "n": "5"})


async def test_timestamp_without_zone_is_utc_and_null_is_the_query_time(peer: Peer) -> None:
    (sample,) = await fetch(peer, "SELECT 1 AS value, timestamp '2026-03-01 12:00' AS t", timestamp="t")
    assert sample.at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    (sample,) = await fetch(peer, "SELECT 1 AS value, NULL::timestamptz AS t", timestamp="t")
    assert abs(clock() - sample.at) < timedelta(seconds=10)


async def test_label_types_are_converted_to_text(peer: Peer) -> None:
    (sample,) = await fetch(
        peer,
        """SELECT 1 AS value, 1.50::numeric AS n, date '2026-03-01' AS d, inet '10.0.0.1' AS i, 'x'::name AS name,
           'c29f1c22-9a5e-4e0c-9d54-6ba4e0f2d2f1'::uuid AS u, interval '90 s' AS v, '{"a": 1}'::jsonb AS j""",
    )
    assert dict(sample.labels) == {
        "n": "1.50",
        "d": "2026-03-01",
        "i": "10.0.0.1",
        "name": "x",
        "u": "c29f1c22-9a5e-4e0c-9d54-6ba4e0f2d2f1",
        "v": "0:01:30",
        "j": '{"a": 1}',
    }


@pytest.mark.parametrize(
    ("query", "more", "message"),
    [
        ("SELECT 1 AS a, 2 AS b", {}, "the value column is ambiguous: name it value, or set value"),
        ("SELECT 1 AS a, 2 AS value, 3 AS value", {}, "the query returns several columns 'value'"),
        ("SELECT 1 AS a", {"value": "b"}, "the query returns no column 'b'"),
        ("SELECT 1 AS a", {"value": "a", "labels": ["c"]}, "the query returns no column 'c'"),
        ("SELECT 'x' AS a, 2 AS a, 1 AS value", {}, "the query returns several columns 'a'"),
        ("SELECT '12' AS value", {}, "the value column is not numeric"),
        ("SELECT true AS value", {}, "the value column is not numeric"),
        (
            "SELECT 1 AS value, ARRAY[1] AS a",
            {},
            "a label column has an unsupported type: cast it to text in the query",
        ),
        (
            "SELECT 1 AS value, '\\x00'::bytea AS a",
            {},
            "a label column has an unsupported type: cast it to text in the query",
        ),
        ("SELECT 1 AS value, 5 AS t", {"timestamp": "t"}, "the timestamp column is not a timestamp"),
        ("SELECT", {}, "the value column is ambiguous: name it value, or set value"),
    ],
)
async def test_missing_ambiguous_and_unsupported_columns_are_reported(
    peer: Peer, query: str, more: Json, message: str
) -> None:
    with pytest.raises(BackendError) as caught:
        await fetch(peer, query, **more)
    assert (caught.value.failure, caught.value.message) == (FailureClass.BAD_QUERY, message)


async def test_more_rows_than_max_rows_are_rejected_without_reading_them(peer: Peer) -> None:
    async with open_backend(peer, maxRows=10) as opened:
        assert len(await opened.fetch({"query": "SELECT generate_series(1, 10)"})) == 10
        too_many = (FailureClass.REFUSED, "the query returns more rows than maxRows allows")
        assert await failure(opened, "SELECT generate_series(1, 11)") == too_many
        assert await failure(opened, "SELECT generate_series(1, 1000000000000)") == too_many


# ---- read-only transactions and cancellation


@pytest.mark.parametrize(
    "query",
    [
        "WITH deleted AS (DELETE FROM depths RETURNING 1) SELECT count(*) FROM deleted",
        "SELECT count(*) FROM depths; DELETE FROM depths",
        "SELECT count(*) FROM depths; COMMIT; DELETE FROM depths",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT set_config('transaction_read_only', 'off', true), delete_all() AS value",
        "SELECT delete_all() AS value",
        "SELECT nextval('numbers') AS value",
        "SELECT 1 AS value INTO copy",
        "SELECT depth AS value FROM depths FOR UPDATE",
    ],
)
async def test_query_cannot_change_data_even_with_permission(peer: Peer, query: str) -> None:
    server = peer.server
    server.set_values({"orders": 3})
    server.run(
        "CREATE OR REPLACE FUNCTION delete_all() RETURNS int LANGUAGE plpgsql"
        " AS $$BEGIN DELETE FROM depths; RETURN 1; END$$",
        "CREATE SEQUENCE IF NOT EXISTS numbers",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO reader",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO reader",
        "GRANT CREATE ON SCHEMA public TO reader",
    )
    async with open_backend(peer) as opened:
        assert (await failure(opened, query))[0] is FailureClass.BAD_QUERY
        (sample,) = await opened.fetch(peer.parameters_for("orders"))
        assert sample.value == 3
    assert server.run("SELECT count(*) FROM depths").strip() == "1"
    assert server.run("SELECT is_called FROM numbers").strip() == "f"
    server.run("REVOKE ALL ON salaries FROM reader")


async def test_changes_in_a_read_only_transaction_are_rolled_back(peer: Peer) -> None:
    await fetch(peer, "SELECT lo_create(0)::bigint AS value")  # rejected since PostgreSQL 16
    assert peer.server.run("SELECT count(*) FROM pg_largeobject_metadata").strip() == "0"


async def test_query_is_canceled_on_the_server_after_the_deadline(peer: Peer) -> None:
    async with open_backend(peer) as opened:
        expected = await failure(opened, "SELECT pg_sleep(600), 1 AS value", 0.5)
        assert expected == (FailureClass.TIMED_OUT, "no response within 0.5s")
        await asyncio.to_thread(wait_until, lambda: active_queries(peer) == 0)


async def test_query_is_canceled_on_the_server_when_the_caller_is_cancelled(peer: Peer) -> None:
    async with open_backend(peer) as opened:
        task = asyncio.create_task(opened.fetch({"query": "SELECT pg_sleep(600), 1 AS value"}, 600))
        await asyncio.to_thread(wait_until, lambda: active_queries(peer) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, lambda: active_queries(peer) == 0)


async def test_close_cancels_queries_on_the_server(peer: Peer) -> None:
    async with open_backend(peer) as opened:
        task = asyncio.create_task(opened.fetch({"query": "SELECT pg_sleep(600), 1 AS value"}, 600))
        await asyncio.to_thread(wait_until, lambda: active_queries(peer) == 1)
        await opened.backend.aclose()
        with pytest.raises(BackendError):
            await task
        assert await asyncio.to_thread(active_queries, peer) == 0


async def test_server_ends_the_query_if_the_cancellation_does_not_arrive(peer: Peer) -> None:
    async with open_backend(peer) as opened:
        task = asyncio.create_task(opened.fetch({"query": "SELECT pg_sleep(600), 1 AS value"}, 2))
        await asyncio.to_thread(wait_until, lambda: active_queries(peer) == 1)
        peer.proxy.stall()  # the server receives nothing from now on
        with pytest.raises(BackendError):
            await task
        await asyncio.to_thread(wait_until, lambda: active_queries(peer) == 0)
        peer.recover()


async def test_connections_are_limited_to_max_connections(peer: Peer) -> None:
    async with open_backend(peer, maxConnections=2) as opened:
        slow = "SELECT count(*) AS value FROM pg_stat_activity, pg_sleep(0.05) WHERE usename = 'reader'"
        results = await asyncio.gather(*(opened.fetch({"query": slow}) for _ in range(8)))
        assert {sample.value for (sample,) in results} <= {1, 2}


async def test_session_is_reset_after_a_query(peer: Peer) -> None:
    async with open_backend(peer, maxConnections=1) as opened:
        for setting in ("statement_timeout", "search_path"):
            await opened.fetch({"query": f"SELECT set_config('{setting}', '0', false), 1 AS value"})
        await opened.fetch({"query": "SELECT pg_advisory_lock(1)::text, 1 AS value"})
        query = """SELECT count(*) AS value, current_setting('search_path') AS path,
                   current_setting('transaction_read_only') AS read_only FROM pg_locks WHERE locktype = 'advisory'"""
        (sample,) = await opened.fetch({"query": query})
        assert (sample.value, dict(sample.labels)) == (0, {"path": '"$user", public', "read_only": "on"})
        before = peer.proxy.connections
        assert (await failure(opened, "SELECT 1 / 0"))[0] is FailureClass.BAD_QUERY
        await opened.fetch({"query": query})
        assert peer.proxy.connections == before, "the connection is reused, also after a failed query"


# ---- errors by SQLSTATE


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 1 FROM nowhere", (FailureClass.BAD_QUERY, "the query is invalid (42P01 UndefinedTable)")),
        ("SELECT FROM FROM", (FailureClass.BAD_QUERY, "the query is invalid (42601 PostgresSyntax)")),
        ("SELECT 1 / 0", (FailureClass.BAD_QUERY, "the query failed on its data (22012 DivisionByZero)")),
        (
            "SELECT salary AS value FROM salaries",
            (FailureClass.UNAUTHORIZED, "permission denied: the user needs SELECT (42501 InsufficientPrivilege)"),
        ),
    ],
)
async def test_errors_are_classified_by_sqlstate(peer: Peer, query: str, expected: tuple[FailureClass, str]) -> None:
    async with open_backend(peer) as opened:
        assert await failure(opened, query) == expected


async def test_missing_database_is_reported(peer: Peer) -> None:
    async with open_backend(peer, database="nowhere") as opened:
        expected = (FailureClass.REFUSED, "the database does not exist (3D000 InvalidCatalogName)")
        assert await failure(opened, "SELECT 1") == expected


async def test_environment_variables_and_pgpass_are_ignored(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pgpass").write_text(f"*:*:*:*:{peer.current_secret}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSWORD", peer.current_secret)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    monkeypatch.setenv("PGHOST", "192.0.2.1")
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "standby")
    async with open_backend(peer, passwordFile="") as opened:
        assert (await failure(opened, "SELECT 1"))[0] is FailureClass.UNAUTHORIZED


async def test_backend_recovers_after_the_server_restarts(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        await opened.fetch(peer.parameters_for("orders"))
        await asyncio.to_thread(peer.server.end)
        assert (await failure(opened, "SELECT 1"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(peer.server.start)
        (sample,) = await opened.fetch(peer.parameters_for("orders"))
        assert sample.value == 3


async def test_broken_idle_connection_is_replaced_without_an_error(peer: Peer) -> None:
    peer.set_values({"orders": 3})
    async with open_backend(peer) as opened:
        for _ in range(3):
            (sample,) = await opened.fetch(peer.parameters_for("orders"))
            assert sample.value == 3
            await asyncio.to_thread(peer.server.drop_sessions)


# ---- TLS


async def test_host_name_is_verified_only_with_verify_full(peer: Peer) -> None:
    async with open_backend(peer, host="127.0.0.1") as opened:
        expected = (FailureClass.UNREACHABLE, "TLS handshake failed: certificate not accepted")
        assert await failure(opened, "SELECT 1") == expected
    async with open_backend(peer, host="127.0.0.1", sslMode="verify-ca") as opened:
        await opened.fetch({"query": "SELECT 1"})


@pytest.mark.parametrize("mode", ["verify-full", "verify-ca"])
async def test_certificate_of_another_ca_is_rejected(peer: Peer, mode: str, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(Authority.new("other").pem)
    async with open_backend(peer, sslMode=mode, tls={"caFile": str(tmp_path / "ca.crt")}) as opened:
        expected = (FailureClass.UNREACHABLE, "TLS handshake failed: certificate not accepted")
        assert await failure(opened, "SELECT 1") == expected
        (tmp_path / "ca.crt").write_text(peer.server.authority.pem)
        await opened.fetch({"query": "SELECT 1"})


@pytest.mark.parametrize(("mode", "is_encrypted"), [("require", "true"), ("disable", "false")])
async def test_ssl_modes_without_verification(peer: Peer, mode: str, is_encrypted: str) -> None:
    async with open_backend(peer, sslMode=mode, tls={}) as opened:
        query = "SELECT 1 AS value, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        (sample,) = await opened.fetch({"query": query})
        assert dict(sample.labels) == {"ssl": is_encrypted}


async def test_server_without_tls_is_rejected(peer: Peer) -> None:
    peer.proxy.respond(b"N")
    async with open_backend(peer) as opened:
        expected = (FailureClass.REFUSED, "the server does not support TLS, or is not PostgreSQL")
        assert await failure(opened, "SELECT 1") == expected


async def test_authentication_by_client_certificate(peer: Peer, tmp_path: Path) -> None:
    certificate, key = peer.server.clients.client("with_certificate").save(tmp_path, "client")
    tls = {"caFile": str(peer.server.ca_file), "certFile": str(certificate), "keyFile": str(key)}
    async with open_backend(peer, username="with_certificate", passwordFile="", tls=tls) as opened:
        (sample,) = await opened.fetch({"query": "SELECT 1 AS value, current_user AS name"})
        assert dict(sample.labels) == {"name": "with_certificate"}


# ---- validation


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"query": " -- nothing\n"}, "query: must not be empty"),
        ({"query": "UPDATE a SET b = 1"}, "query: must be read-only and start with SELECT, WITH, VALUES or TABLE"),
        ({"query": "/* x */ commit"}, "query: must be read-only and start with SELECT, WITH, VALUES or TABLE"),
        ({"query": "SELECT '\0'"}, "query: must not contain a null byte"),
        (
            {"query": "SELECT 1", "value": "a", "labels": ["a"]},
            "labels: 'a' is already the value or timestamp column",
        ),
        ({"query": "SELECT 1", "value": "a", "timestamp": "a"}, "timestamp: 'a' is already the value column"),
        ({"query": "SELECT 1", "labels": "queue"}, "labels: expected `array`, got `str`"),
    ],
)
def test_invalid_parameters_are_reported(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, parameters)
    assert caught.value.messages == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize("query", ["select 1", "(SELECT 1)", "-- a\n/* b */ WITH x AS (SELECT 1) TABLE x", "VALUES(1)"])
def test_read_only_queries_are_accepted(peer: Peer, query: str) -> None:
    configuration_for(peer, {"query": query})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"host": "postgres://a:b@c/d"},
            "host: must not be a URL; use host, port, database, username and passwordFile",
        ),
        ({"host": "a,b"}, "host: must be one host name or IP address"),
        ({"host": "/run/postgresql"}, "host: must be one host name or IP address"),
        ({"host": ""}, "host: must not be empty"),
        ({"database": ""}, "database: must not be empty"),
        ({"port": 0}, "port: must be from 1 to 65535, is 0"),
        ({"maxConnections": 0}, "maxConnections: must be at least 1, is 0"),
        ({"maxRows": 0}, "maxRows: must be at least 1, is 0"),
        ({"sslMode": "disable"}, "tls: cannot be combined with sslMode: disable"),
        (
            {"sslMode": "require"},
            "tls.caFile: has no effect with sslMode: require; use verify-ca or verify-full",
        ),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: required with keyFile"),
    ],
)
def test_invalid_settings_are_reported(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configuration_for(peer, **settings)
    assert caught.value.messages == (f"backends.it.postgresql.{problem}",)


def test_use_by_objects_requires_a_list_of_namespaces(peer: Peer) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        decode({"backends": {"it": {"postgresql": peer.settings(), "externalMetrics": {}}}, "rules": []})
    assert caught.value.messages[0].startswith("backends.it.externalMetrics.namespaces: required")
