"""A listener whose certificate and authorities are replaced under it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from adapter.tls.context import Pair, PairInvalid, ServingContext
from adapter.tls.files import ServingFiles
from tests.control_plane.certificates import Authority, Credentials

OLD, NEW = Authority.new("old"), Authority.new("new")


def pair(credentials: Credentials) -> Pair:
    return Pair(credentials.certificate_pem, credentials.key_pem)


@asynccontextmanager
async def echoing(context: ServingContext) -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context.listener) as server:
        yield server.sockets[0].getsockname()[1]


class Visitor:
    """Somebody connected, who trusts one authority."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def come(cls, port: int, trusting: Authority, version: ssl.TLSVersion | None = None) -> "Visitor":
        tls = ssl.create_default_context(cadata=trusting.pem)
        if version is not None:
            tls.set_ciphers("DEFAULT:@SECLEVEL=0")
            tls.minimum_version = tls.maximum_version = version
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="localhost"))

    async def is_heard(self) -> bool:
        self._writer.write(b"hello\n")
        return await self._reader.readline() == b"hello\n"

    async def leave(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def test_a_new_certificate_is_shown_to_new_connections_and_old_ones_live_on() -> None:
    context = ServingContext()
    context.serve_with(pair(OLD.server("localhost")))
    async with echoing(context) as port:
        early = await Visitor.come(port, OLD)
        context.serve_with(pair(NEW.server("localhost")))
        late = await Visitor.come(port, NEW)
        assert await early.is_heard()
        assert await late.is_heard()
        with pytest.raises(ssl.SSLCertVerificationError):
            await Visitor.come(port, OLD)
        await early.leave()
        await late.leave()


async def test_without_a_certificate_there_is_no_handshake() -> None:
    context = ServingContext()
    assert not context.has_certificate
    async with echoing(context) as port:
        with pytest.raises(OSError):  # noqa: PT011 - reset or refused, by the system's mood
            await Visitor.come(port, OLD)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_1_1_is_refused_and_1_2_is_served() -> None:
    context = ServingContext()
    context.serve_with(pair(OLD.server("localhost")))
    async with echoing(context) as port:
        with pytest.raises(OSError):  # noqa: PT011 - an alert or a reset, by the version of the library
            await Visitor.come(port, OLD, ssl.TLSVersion.TLSv1_1)
        visitor = await Visitor.come(port, OLD, ssl.TLSVersion.TLSv1_2)
        assert await visitor.is_heard()
        await visitor.leave()


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(
            Pair(OLD.server("localhost").certificate_pem, OLD.server("localhost").key_pem), id="another's key"
        ),
        pytest.param(Pair("", ""), id="nothing"),
        pytest.param(Pair("certificate", "key"), id="no PEM"),
    ],
)
async def test_a_pair_that_is_none_leaves_the_old_one_serving(wrong: Pair) -> None:
    context = ServingContext()
    context.serve_with(pair(OLD.server("localhost")))
    with pytest.raises(PairInvalid):
        context.serve_with(wrong)
    async with echoing(context) as port:
        visitor = await Visitor.come(port, OLD)
        assert await visitor.is_heard()
        await visitor.leave()


def test_a_key_is_not_printed() -> None:
    assert "KEY" not in repr(pair(OLD.server("localhost")))


async def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    files = ServingFiles(*OLD.server("localhost").save(tmp_path, "tls"), every=timedelta(milliseconds=10))
    context = ServingContext()
    await files.load(context)
    keeping = asyncio.create_task(files.keep(context))
    async with echoing(context) as port, asyncio.timeout(10):
        (tmp_path / "tls.crt").write_text("half")  # a pair that does not match is waited out
        await asyncio.sleep(0.05)
        await (await Visitor.come(port, OLD)).leave()
        NEW.server("localhost").save(tmp_path, "tls")
        while True:
            try:
                await (await Visitor.come(port, NEW)).leave()
                break
            except ssl.SSLCertVerificationError:
                await asyncio.sleep(0.01)
    keeping.cancel()


async def test_files_that_are_not_there_are_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(PairInvalid, match="cannot be read"):
        await ServingFiles(tmp_path / "tls.crt", tmp_path / "tls.key").load(ServingContext())
