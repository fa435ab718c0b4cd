"""A client that opens many connections without credentials and keeps them open, in a process of its own.

``python -m tests.security.attacker PORT CA_FILE ADDRESS STAGE...`` prints a line when it has tried to open each of its
connections, which it divides between the stages. It goes on until its standard input is closed. A connection that the
server closes is opened again. It imports nothing of the project, so that it starts fast.
"""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

from tests.waiting import GIVE_UP

CONNECTIONS: Final = 300
"""More than half of ``maxConnections``."""

_PAUSE: Final = 1.0
OTHER_ADDRESS: Final = "127.0.0.2"
_REQUEST: Final = b"GET /apis HTTP/1.1\r\nHost: x\r\n"
_AUTHENTICATED: Final = _REQUEST + b"Authorization: Bearer good\r\n\r\n"
_LARGE_HEADERS: Final = b"".join(b"X-%d: %s\r\n" % (number, b"v" * 8000) for number in range(40))
_MANY_HEADERS: Final = b"".join(b"%x:\r\n" % number for number in range(1022))


class Stage(NamedTuple):
    """How far a connection gets: what is sent, with or without TLS, and whether responses are read."""

    data: bytes
    tls: bool = True
    reads: bool = True


STAGES: Final = {
    "bare TCP": Stage(b"", tls=False),
    "half a ClientHello": Stage(bytes.fromhex("1603010200010001fc0303"), tls=False),
    "an endless TLS record": Stage(bytes.fromhex("16030140000100") + bytes(64), tls=False),
    "an idle TLS connection": Stage(b""),
    "half a header": Stage(_REQUEST + b"X-Slow: "),
    "many headers": Stage(_REQUEST + _MANY_HEADERS),
    "large headers": Stage(_REQUEST + _LARGE_HEADERS[:65_000]),
    "too large headers": Stage(_REQUEST + _LARGE_HEADERS),
    "a slow body": Stage(_REQUEST + b"Content-Length: 1000000\r\n\r\n" + bytes(1000)),
    "pipelined requests": Stage((_REQUEST + b"\r\n") * 300),
    "unread responses": Stage((_REQUEST + b"\r\n") * 300, reads=False),
    "many headers of an authenticated caller": Stage(_AUTHENTICATED + _REQUEST + _MANY_HEADERS),
    "an upgrade": Stage(_REQUEST + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n" + bytes(200_000)),
}


class Attacker:
    """Holds many connections."""

    def __init__(self, port: int, tls: ssl.SSLContext, address: str) -> None:
        self._port, self._tls, self._address = port, tls, address
        self._attempts = 0
        self.all_opened = asyncio.Event()

    async def hold(self, stage: Stage) -> None:
        """Keep one connection open."""
        while True:
            with suppress(OSError):
                await self._connect(stage)
            await asyncio.sleep(_PAUSE)

    async def _connect(self, stage: Stage) -> None:
        tls = self._tls if stage.tls else None
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=tls, local_addr=(self._address, 0)
            )
        finally:
            self._attempts += 1
            if self._attempts >= CONNECTIONS:
                self.all_opened.set()
        try:
            if not stage.reads:
                writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of a stream can pause
            writer.write(stage.data)
            await (reader.read() if stage.reads else asyncio.sleep(60))
        finally:
            writer.transport.abort()


@contextmanager
def attacked(port: int, ca: Path, stages: Iterable[str], address: str = OTHER_ADDRESS) -> Iterator[None]:
    """Attack the server for the length of the block."""
    command = [sys.executable, "-m", "tests.security.attacker", str(port), str(ca), address, *stages]
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as attacker:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        try:
            assert attacker.stdout.readline() == b"opened\n"
            yield
        finally:
            attacker.stdin.close()
            attacker.wait(GIVE_UP)


async def _attack(port: int, ca: Path, address: str, stages: list[Stage]) -> None:
    attacker = Attacker(port, ssl.create_default_context(cafile=ca), address)
    holds = [attacker.hold(stage) for stage, _ in zip(cycle(stages), range(CONNECTIONS), strict=False)]
    attacks = [asyncio.create_task(hold) for hold in holds]
    await attacker.all_opened.wait()
    print("opened", flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.read)
    for attack in attacks:
        attack.cancel()


if __name__ == "__main__":
    asyncio.run(_attack(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], [STAGES[name] for name in sys.argv[4:]]))
