"""What is PostgreSQL's own: rows and columns, a query that can only read and always ends, TLS, a server that dies."""

import asyncio
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapter.app import clock
from adapter.config.model import decode
from adapter.errors import BackendError, ConfigInvalid
from adapter.sample import RawSample
from autoscaler.types.observation import FailureClass
from tests.backends.conftest import Opened, backend_of, configured
from tests.backends.contract import Json
from tests.backends.peers.postgresql import Peer
from tests.control_plane.certificates import Authority

pytestmark = [
    pytest.mark.broker,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("running", [pytest.param(Peer, id="postgresql")], indirect=True, scope="session"),
]


async def asked(peer: Peer, query: str, **more: object) -> tuple[RawSample, ...]:
    async with backend_of(peer) as opened:
        return await opened.ask({"query": query, **more})


async def failure(opened: Opened, query: str, seconds: float | None = None) -> tuple[FailureClass, str]:
    with pytest.raises(BackendError) as caught:
        await opened.ask({"query": query}, seconds)
    return caught.value.failure, caught.value.message


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def under_way(peer: Peer) -> int:
    """Count what the server is busy with for us."""
    busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active'"
    return int(peer.server.run(busy))


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
        ("(SELECT sum(depth) FROM depths WHERE queue = 'nobody')", math.nan),
        ("'Infinity'::float8", math.inf),
        ("1e400::numeric", math.inf),
    ],
)
async def test_a_number_of_any_kind_is_that_number_and_null_is_none(peer: Peer, number: str, value: float) -> None:
    (sample,) = await asked(peer, f"SELECT {number} AS n")
    assert sample.labels == {}
    assert sample.value == value or (math.isnan(sample.value) and math.isnan(value))


async def test_each_row_is_a_series_and_other_columns_are_its_labels(peer: Peer) -> None:
    found = await asked(
        peer,
        """-- what waits, by queue and urgency
        (VALUES ('orders', true, 1, 3.5), ('größe "x"', false, 2, 4), (NULL, NULL, 3, NULL))""",
        value="column4",
    )
    assert [dict(sample.labels) for sample in found] == [
        {"column1": "orders", "column2": "true", "column3": "1"},
        {"column1": 'größe "x"', "column2": "false", "column3": "2"},
        {"column3": "3"},
    ]
    assert [sample.value for sample in found[:2]] == [3.5, 4]


async def test_a_rule_may_choose_its_columns(peer: Peer) -> None:
    query = "SELECT 'a' AS x, 'b' AS y, 5 AS n, now() - interval '1 minute' AS since, 1 AS value"
    (sample,) = await asked(peer, query, value="n", labels=["y"], at="since")
    assert (sample.value, dict(sample.labels)) == (5, {"y": "b"})
    assert timedelta(seconds=50) < clock() - sample.at < timedelta(seconds=70)
    (sample,) = await asked(peer, query, at="since")
    assert (sample.value, dict(sample.labels)) == (1, {"x": "a", "y": "b", "n": "5"})


async def test_a_time_without_a_zone_is_utc_and_no_time_is_now(peer: Peer) -> None:
    (sample,) = await asked(peer, "SELECT 1 AS value, timestamp '2026-03-01 12:00' AS t", at="t")
    assert sample.at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    (sample,) = await asked(peer, "SELECT 1 AS value, NULL::timestamptz AS t", at="t")
    assert abs(clock() - sample.at) < timedelta(seconds=10)


async def test_labels_of_every_kind_that_can_be_written_down(peer: Peer) -> None:
    (sample,) = await asked(
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
        ("SELECT 1 AS a, 2 AS b", {}, "which column is the number? call it value"),
        ("SELECT 1 AS a, 2 AS value, 3 AS value", {}, "the query has several columns 'value'"),
        ("SELECT 1 AS a", {"value": "b"}, "the query has no column 'b'"),
        ("SELECT 1 AS a", {"value": "a", "labels": ["c"]}, "the query has no column 'c'"),
        ("SELECT 'x' AS a, 2 AS a, 1 AS value", {}, "the query has several columns 'a'"),
        ("SELECT '12' AS value", {}, "the column with the number holds something else"),
        ("SELECT true AS value", {}, "the column with the number holds something else"),
        ("SELECT 1 AS value, ARRAY[1] AS a", {}, "a label holds what is no text; cast it in the query"),
        ("SELECT 1 AS value, '\\x00'::bytea AS a", {}, "a label holds what is no text; cast it in the query"),
        ("SELECT 1 AS value, 5 AS t", {"at": "t"}, "the column with the time holds something else"),
        ("SELECT", {}, "which column is the number? call it value"),
    ],
)
async def test_columns_that_are_not_clear_are_told(peer: Peer, query: str, more: Json, message: str) -> None:
    with pytest.raises(BackendError) as caught:
        await asked(peer, query, **more)
    assert (caught.value.failure, caught.value.message) == (FailureClass.BAD_QUERY, message)


async def test_more_rows_than_may_be_are_refused_before_they_are_read(peer: Peer) -> None:
    async with backend_of(peer, maxRows=10) as opened:
        assert len(await opened.ask({"query": "SELECT generate_series(1, 10)"})) == 10
        refused = (FailureClass.REFUSED, "the query finds more rows than maxRows")
        assert await failure(opened, "SELECT generate_series(1, 11)") == refused
        assert await failure(opened, "SELECT generate_series(1, 1000000000000)") == refused


# ---- it can only read, and it ends


@pytest.mark.parametrize(
    "query",
    [
        "WITH gone AS (DELETE FROM depths RETURNING 1) SELECT count(*) FROM gone",
        "SELECT count(*) FROM depths; DELETE FROM depths",
        "SELECT count(*) FROM depths; COMMIT; DELETE FROM depths",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT set_config('transaction_read_only', 'off', true), emptied() AS value",
        "SELECT emptied() AS value",
        "SELECT nextval('numbers') AS value",
        "SELECT 1 AS value INTO copied",
        "SELECT depth AS value FROM depths FOR UPDATE",
    ],
)
async def test_nothing_can_be_changed_even_by_who_may(peer: Peer, query: str) -> None:
    server = peer.server
    server.hold({"orders": 3})
    server.run(
        "CREATE OR REPLACE FUNCTION emptied() RETURNS int LANGUAGE plpgsql"
        " AS $$BEGIN DELETE FROM depths; RETURN 1; END$$",
        "CREATE SEQUENCE IF NOT EXISTS numbers",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO reader",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO reader",
        "GRANT CREATE ON SCHEMA public TO reader",
    )
    async with backend_of(peer) as opened:
        assert (await failure(opened, query))[0] is FailureClass.BAD_QUERY
        (sample,) = await opened.ask(peer.one("orders"))
        assert sample.value == 3
    assert server.run("SELECT count(*) FROM depths").strip() == "1"
    assert server.run("SELECT is_called FROM numbers").strip() == "f"
    server.run("REVOKE ALL ON salaries FROM reader")


async def test_what_a_transaction_that_only_reads_lets_through_is_undone(peer: Peer) -> None:
    await asked(peer, "SELECT lo_create(0)::bigint AS value")  # PostgreSQL 16 is the first to refuse it
    assert peer.server.run("SELECT count(*) FROM pg_largeobject_metadata").strip() == "0"


async def test_a_query_that_takes_too_long_ends_at_the_server_too(peer: Peer) -> None:
    async with backend_of(peer) as opened:
        told = await failure(opened, "SELECT pg_sleep(600), 1 AS value", 0.5)
        assert told == (FailureClass.TIMED_OUT, "no answer within 0.5s")
        await asyncio.to_thread(until, lambda: under_way(peer) == 0)


async def test_who_leaves_takes_the_query_along(peer: Peer) -> None:
    async with backend_of(peer) as opened:
        leaving = asyncio.create_task(opened.ask({"query": "SELECT pg_sleep(600), 1 AS value"}, 600))
        await asyncio.to_thread(until, lambda: under_way(peer) == 1)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await asyncio.to_thread(until, lambda: under_way(peer) == 0)


async def test_closing_ends_queries_at_the_server(peer: Peer) -> None:
    async with backend_of(peer) as opened:
        waiting = asyncio.create_task(opened.ask({"query": "SELECT pg_sleep(600), 1 AS value"}, 600))
        await asyncio.to_thread(until, lambda: under_way(peer) == 1)
        await opened.backend.aclose()
        with pytest.raises(BackendError):
            await waiting
        assert await asyncio.to_thread(under_way, peer) == 0


async def test_the_server_itself_ends_a_query_whose_client_is_gone(peer: Peer) -> None:
    async with backend_of(peer) as opened:
        waiting = asyncio.create_task(opened.ask({"query": "SELECT pg_sleep(600), 1 AS value"}, 2))
        await asyncio.to_thread(until, lambda: under_way(peer) == 1)
        peer.hop.stall()  # whatever we say from now on is not heard
        with pytest.raises(BackendError):
            await waiting
        await asyncio.to_thread(until, lambda: under_way(peer) == 0)
        peer.recover()


async def test_no_more_connections_than_may_be(peer: Peer) -> None:
    async with backend_of(peer, connections=2) as opened:
        slow = "SELECT count(*) AS value FROM pg_stat_activity, pg_sleep(0.05) WHERE usename = 'reader'"
        found = await asyncio.gather(*(opened.ask({"query": slow}) for _ in range(8)))
        assert {sample.value for (sample,) in found} <= {1, 2}


async def test_nothing_of_a_query_is_left_in_its_session(peer: Peer) -> None:
    async with backend_of(peer, connections=1) as opened:
        for setting in ("statement_timeout", "search_path"):
            await opened.ask({"query": f"SELECT set_config('{setting}', '0', false), 1 AS value"})
        await opened.ask({"query": "SELECT pg_advisory_lock(1)::text, 1 AS value"})
        query = """SELECT count(*) AS value, current_setting('search_path') AS path,
                   current_setting('transaction_read_only') AS read_only FROM pg_locks WHERE locktype = 'advisory'"""
        (sample,) = await opened.ask({"query": query})
        assert (sample.value, dict(sample.labels)) == (0, {"path": '"$user", public', "read_only": "on"})
        before = peer.hop.connections
        assert (await failure(opened, "SELECT 1 / 0"))[0] is FailureClass.BAD_QUERY
        await opened.ask({"query": query})
        assert peer.hop.connections == before, "one connection serves all, also after a query that fails"


# ---- failures by their state


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT 1 FROM nowhere", (FailureClass.BAD_QUERY, "it does not understand the query (42P01 UndefinedTable)")),
        ("SELECT FROM FROM", (FailureClass.BAD_QUERY, "it does not understand the query (42601 PostgresSyntax)")),
        ("SELECT 1 / 0", (FailureClass.BAD_QUERY, "the query fails on what it finds (22012 DivisionByZero)")),
        (
            "SELECT salary AS value FROM salaries",
            (FailureClass.UNAUTHORIZED, "our user may not read that (42501 InsufficientPrivilege)"),
        ),
    ],
)
async def test_a_refusal_is_told_by_its_state(peer: Peer, query: str, told: tuple[FailureClass, str]) -> None:
    async with backend_of(peer) as opened:
        assert await failure(opened, query) == told


async def test_a_database_that_is_not_there(peer: Peer) -> None:
    async with backend_of(peer, database="nowhere") as opened:
        told = (FailureClass.REFUSED, "there is no such database (3D000 InvalidCatalogName)")
        assert await failure(opened, "SELECT 1") == told


async def test_nothing_of_the_environment_is_used(peer: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pgpass").write_text(f"*:*:*:*:{peer.shown}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSWORD", peer.shown)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    monkeypatch.setenv("PGHOST", "192.0.2.1")
    monkeypatch.setenv("PGSSLMODE", "disable")
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "standby")
    async with backend_of(peer, passwordFile="") as opened:
        assert (await failure(opened, "SELECT 1"))[0] is FailureClass.UNAUTHORIZED


async def test_a_server_that_is_killed_is_unreachable_and_comes_back(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        await opened.ask(peer.one("orders"))
        await asyncio.to_thread(peer.server.end)
        assert (await failure(opened, "SELECT 1"))[0] is FailureClass.UNREACHABLE
        await asyncio.to_thread(peer.server.start)
        (sample,) = await opened.ask(peer.one("orders"))
        assert sample.value == 3


async def test_an_idle_connection_that_broke_is_nobodys_failure(peer: Peer) -> None:
    peer.hold({"orders": 3})
    async with backend_of(peer) as opened:
        for _ in range(3):
            (sample,) = await opened.ask(peer.one("orders"))
            assert sample.value == 3
            await asyncio.to_thread(peer.server.drop_sessions)


# ---- TLS


async def test_the_certificate_must_be_for_the_name_unless_told_otherwise(peer: Peer) -> None:
    async with backend_of(peer, host="127.0.0.1") as opened:
        told = (FailureClass.UNREACHABLE, "its certificate or ours was not accepted")
        assert await failure(opened, "SELECT 1") == told
    async with backend_of(peer, host="127.0.0.1", sslMode="verify-ca") as opened:
        await opened.ask({"query": "SELECT 1"})


@pytest.mark.parametrize("mode", ["verify-full", "verify-ca"])
async def test_a_strangers_certificate_is_not_accepted(peer: Peer, mode: str, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(Authority.new("strangers").pem)
    async with backend_of(peer, sslMode=mode, tls={"caFile": str(tmp_path / "ca.crt")}) as opened:
        told = (FailureClass.UNREACHABLE, "its certificate or ours was not accepted")
        assert await failure(opened, "SELECT 1") == told
        (tmp_path / "ca.crt").write_text(peer.server.authority.pem)
        await opened.ask({"query": "SELECT 1"})


@pytest.mark.parametrize(("mode", "is_encrypted"), [("require", "true"), ("disable", "false")])
async def test_less_than_verified_must_be_asked_for(peer: Peer, mode: str, is_encrypted: str) -> None:
    async with backend_of(peer, sslMode=mode, tls={}) as opened:
        query = "SELECT 1 AS value, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        (sample,) = await opened.ask({"query": query})
        assert dict(sample.labels) == {"ssl": is_encrypted}


async def test_a_server_without_tls_is_not_spoken_with_in_the_clear(peer: Peer) -> None:
    peer.hop.answer(b"N")
    async with backend_of(peer) as opened:
        told = (FailureClass.REFUSED, "it does not offer TLS, or is no PostgreSQL")
        assert await failure(opened, "SELECT 1") == told


async def test_a_certificate_says_who_we_are(peer: Peer, tmp_path: Path) -> None:
    certificate, key = peer.server.clients.client("with_certificate").save(tmp_path, "client")
    tls = {"caFile": str(peer.server.ca_file), "certFile": str(certificate), "keyFile": str(key)}
    async with backend_of(peer, username="with_certificate", passwordFile="", tls=tls) as opened:
        (sample,) = await opened.ask({"query": "SELECT 1 AS value, current_user AS who"})
        assert dict(sample.labels) == {"who": "with_certificate"}


# ---- what can be seen before it is asked


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"query": " -- nothing\n"}, "query: must not be empty"),
        ({"query": "UPDATE a SET b = 1"}, "query: must begin with SELECT, WITH, VALUES or TABLE: it may only read"),
        ({"query": "/* x */ commit"}, "query: must begin with SELECT, WITH, VALUES or TABLE: it may only read"),
        ({"query": "SELECT '\0'"}, "query: holds a zero byte, which PostgreSQL does not take"),
        (
            {"query": "SELECT 1", "value": "a", "labels": ["a"]},
            "labels: 'a' is not a label but the number or its time",
        ),
        ({"query": "SELECT 1", "value": "a", "at": "a"}, "at: 'a' is the number; the time is another column"),
        ({"query": "SELECT 1", "labels": "queue"}, "labels: expected `array`, got `str`"),
    ],
)
def test_parameters_that_make_no_sense(peer: Peer, parameters: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, parameters)
    assert caught.value.problems == (f"rules[0].parameters.{problem}",)


@pytest.mark.parametrize("query", ["select 1", "(SELECT 1)", "-- a\n/* b */ WITH x AS (SELECT 1) TABLE x", "VALUES(1)"])
def test_queries_that_read(peer: Peer, query: str) -> None:
    configured(peer, {"query": query})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"host": "postgres://a:b@c/d"},
            "host: is a URL; write the parts: host, port, database, username and passwordFile",
        ),
        ({"host": "a,b"}, "host: must be one name or address"),
        ({"host": "/run/postgresql"}, "host: must be one name or address"),
        ({"host": ""}, "host: must not be empty"),
        ({"database": ""}, "database: must not be empty"),
        ({"port": 0}, "port: must be from 1 to 65535, is 0"),
        ({"connections": 0}, "connections: must be at least 1, is 0"),
        ({"maxRows": 0}, "maxRows: must be at least 1, is 0"),
        ({"sslMode": "disable"}, "tls: is not used with sslMode: disable"),
        (
            {"sslMode": "require"},
            "tls.caFile: is not used with sslMode: require; verify-ca or verify-full uses it",
        ),
        ({"tls": {"keyFile": "k"}}, "tls.certFile: is needed with keyFile"),
    ],
)
def test_settings_that_make_no_sense(peer: Peer, settings: Json, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configured(peer, **settings)
    assert caught.value.problems == (f"backends.it.postgresql.{problem}",)


def test_teams_may_use_it_only_where_they_are_named(peer: Peer) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        decode({"backends": {"it": {"postgresql": peer.settings(), "externalMetrics": {}}}, "rules": []})
    assert caught.value.problems == (
        "backends.it.externalMetrics.namespaces: is needed: with labels of its own a rule sees everything",
    )
