"""Replacing the certificate and the client CAs of a running listener."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from adapter.tls.context import KeyPair, KeyPairInvalid, ServingContext
from adapter.tls.source import CertificateFiles
from tests.control_plane.certificates import Authority, Credentials
from tests.waiting import GIVE_UP

OLD, NEW = Authority.new("old"), Authority.new("new")


def key_pair(credentials: Credentials) -> KeyPair:
    return KeyPair(credentials.certificate_pem, credentials.key_pem)


@asynccontextmanager
async def echoing(context: ServingContext) -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context.listener) as server:
        yield server.sockets[0].getsockname()[1]


class Client:
    """A connection of a client that trusts one CA."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int, ca: Authority, version: ssl.TLSVersion | None = None) -> "Client":
        tls = ssl.create_default_context(cadata=ca.pem)
        if version is not None:
            tls.set_ciphers("DEFAULT:@SECLEVEL=0")
            tls.minimum_version = tls.maximum_version = version
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="localhost"))

    async def echoes(self) -> bool:
        self._writer.write(b"hello\n")
        return await self._reader.readline() == b"hello\n"

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def test_new_certificate_is_used_for_new_connections_and_open_ones_continue() -> None:
    context = ServingContext()
    context.use_key_pair(key_pair(OLD.server("localhost")))
    async with echoing(context) as port:
        before = await Client.connect(port, OLD)
        context.use_key_pair(key_pair(NEW.server("localhost")))
        after = await Client.connect(port, NEW)
        assert await before.echoes()
        assert await after.echoes()
        with pytest.raises(ssl.SSLCertVerificationError):
            await Client.connect(port, OLD)
        await before.close()
        await after.close()


async def test_handshake_fails_without_a_certificate() -> None:
    context = ServingContext()
    assert not context.has_certificate
    async with echoing(context) as port:
        with pytest.raises(OSError):  # noqa: PT011 - an alert or a reset, depending on timing
            await Client.connect(port, OLD)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_1_1_is_rejected_and_1_2_is_accepted() -> None:
    context = ServingContext()
    context.use_key_pair(key_pair(OLD.server("localhost")))
    async with echoing(context) as port:
        with pytest.raises(OSError):  # noqa: PT011 - an alert or a reset, depending on the version of OpenSSL
            await Client.connect(port, OLD, ssl.TLSVersion.TLSv1_1)
        client = await Client.connect(port, OLD, ssl.TLSVersion.TLSv1_2)
        assert await client.echoes()
        await client.close()


@pytest.mark.parametrize(
    "invalid",
    [
        pytest.param(
            KeyPair(OLD.server("localhost").certificate_pem, OLD.server("localhost").key_pem),
            id="key of another certificate",
        ),
        pytest.param(KeyPair("", ""), id="empty"),
        pytest.param(KeyPair("certificate", "key"), id="no PEM"),
    ],
)
async def test_invalid_key_pair_is_rejected_and_the_previous_one_is_served(invalid: KeyPair) -> None:
    context = ServingContext()
    context.use_key_pair(key_pair(OLD.server("localhost")))
    with pytest.raises(KeyPairInvalid):
        context.use_key_pair(invalid)
    async with echoing(context) as port:
        client = await Client.connect(port, OLD)
        assert await client.echoes()
        await client.close()


def test_repr_does_not_contain_the_private_key() -> None:
    assert "KEY" not in repr(key_pair(OLD.server("localhost")))


async def test_changed_files_are_reloaded(tmp_path: Path) -> None:
    files = CertificateFiles(*OLD.server("localhost").save(tmp_path, "tls"), interval=timedelta(milliseconds=10))
    context = ServingContext()
    await files.load(context)
    reloading = asyncio.create_task(files.run(context))
    async with echoing(context) as port, asyncio.timeout(GIVE_UP):
        (tmp_path / "tls.crt").write_text("half")  # an update in progress: the previous pair stays in use
        await asyncio.sleep(0.05)
        await (await Client.connect(port, OLD)).close()
        NEW.server("localhost").save(tmp_path, "tls")
        while True:
            try:
                await (await Client.connect(port, NEW)).close()
                break
            except ssl.SSLCertVerificationError:
                await asyncio.sleep(0.01)
    reloading.cancel()


async def test_missing_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(KeyPairInvalid, match="cannot be read"):
        await CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key").load(ServingContext())
