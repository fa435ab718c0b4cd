"""Private attributes of client libraries that backends override or use must exist with the expected signature.

The versions of these libraries have an upper bound in pyproject.toml. Check these tests before raising it.
"""

import inspect
from typing import Any

import aiokafka.conn
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest
from nats.aio.client import Client
from redis.asyncio.connection import Connection

from adapter.backends.nats.client import NatsClient
from adapter.backends.redis.client import RedisConnection


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_redis_connection_takes_its_socket_arguments_from_the_overridden_method() -> None:
    assert parameters(Connection._connection_arguments) == []
    assert "self._connection_arguments()" in inspect.getsource(Connection._connect)
    assert RedisConnection._connection_arguments is not Connection._connection_arguments
    assert Connection(host="h", port=1)._connection_arguments() == {"host": "h", "port": 1}


def test_redis_connection_has_the_methods_of_the_pool() -> None:
    assert parameters(Connection.send_packed_command)[0] == "command"
    assert parameters(Connection.pack_commands) == ["commands"]
    assert "nowait" in parameters(Connection.disconnect)
    assert isinstance(inspect.getattr_static(Connection, "is_connected"), property)
    assert inspect.iscoroutinefunction(Connection.can_read)
    assert inspect.iscoroutinefunction(Connection.read_response)


def test_nats_client_sends_the_overridden_connect_command_after_tls() -> None:
    source = inspect.getsource(Client._process_connect_init)
    assert parameters(Client._connect_command) == []
    assert NatsClient._connect_command is not Client._connect_command
    assert source.index('"tls_required"') < source.index("self._connect_command()")


async def test_nats_client_reads_the_nkey_and_the_server_info_from_private_attributes() -> None:
    client = Client()
    assert client._server_info == {}
    assert client._public_nkey is None
    assert 'options["nkey"] = self._public_nkey' in inspect.getsource(Client._connect_command)


def test_kafka_connections_and_requests_have_the_expected_parameters() -> None:
    wanted = {"client_id", "request_timeout_ms", "max_idle_ms", "security_protocol", "ssl_context", "sasl_mechanism"}
    assert parameters(aiokafka.conn.create_conn)[:2] == ["host", "port"]
    assert wanted | {"sasl_plain_username", "sasl_plain_password"} <= set(parameters(aiokafka.conn.create_conn))
    assert parameters(aiokafka.conn.AIOKafkaConnection.send)[0] == "request"
    assert parameters(MetadataRequest)[:2] == ["topics", "allow_auto_topic_creation"]
    assert parameters(FindCoordinatorRequest) == ["coordinator_key", "coordinator_type"]
    assert parameters(OffsetFetchRequest)[:2] == ["consumer_group", "partitions"]
    assert parameters(OffsetRequest)[:3] == ["replica_id", "isolation_level", "topics"]
