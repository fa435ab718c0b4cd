"""A moto server that checks signatures and permissions, its users, and the base class of peers that use it."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import boto3

from tests.backends.contract import HttpPeer, Json
from tests.backends.faulty_proxy import LOOPBACK
from tests.control_plane.cluster import free_port
from tests.control_plane.process import Program
from tests.waiting import GIVE_UP

ACCOUNT = "123456789012"
REGION = "eu-west-1"
VERIFIED_AGAINST = "moto 5.2 (server)"


class Key(NamedTuple):
    id: str
    secret: str


class MotoServer:
    """A moto server in its own process that enforces authentication and IAM policies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        folder.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).with_name("moto_with_more.py")
        command: list[str | Path] = [sys.executable, script, str(self.port), folder]
        self.program = Program(command, folder / "moto.log", self._is_ready)
        self._root = Key("testing", "testing")
        self._clients: dict[str, Any] = {}

    def start(self) -> None:
        self.program.start()
        self.add_user("root", "*")
        self._root = self.add_key("root")
        self._clients.clear()
        self._require_authentication()

    def stop(self) -> None:
        for client in self._clients.values():
            client.close()
        self.program.stop()

    def client(self, service: str) -> Any:
        """Return a client with all permissions."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,
                region_name=REGION,
                endpoint_url=self.url,
                aws_access_key_id=self._root.id,
                aws_secret_access_key=self._root.secret,
            )
        return self._clients[service]

    def add_user(self, name: str, *actions: str) -> None:
        self.client("iam").create_user(UserName=name)
        self.allow(name, *actions)

    def allow(self, name: str, *actions: str) -> None:
        """Set the permissions of a user."""
        policy = {"Version": "2012-10-17", "Statement": [_allow(*actions)]}
        self.client("iam").put_user_policy(UserName=name, PolicyName="may", PolicyDocument=json.dumps(policy))

    def add_key(self, user: str) -> Key:
        key = self.client("iam").create_access_key(UserName=user)["AccessKey"]
        return Key(key["AccessKeyId"], key["SecretAccessKey"])

    def remove_key(self, user: str, key: Key) -> None:
        self.client("iam").delete_access_key(UserName=user, AccessKeyId=key.id)

    def add_role(self, name: str, *actions: str, trusted: Json | None = None) -> str:
        """Create a role with these permissions; return its ARN."""
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole", **(trusted or {})}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        role = self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [_allow(*actions)]})
        self.client("iam").put_role_policy(RoleName=name, PolicyName="may", PolicyDocument=policy)
        return str(role["Arn"])

    # ---- CloudWatch features that moto lacks

    def requests(self) -> list[Json]:
        """Return the GetMetricData requests, oldest first."""
        file = self.folder / "requests.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def clear_requests(self) -> None:
        (self.folder / "requests.jsonl").write_text("")

    @contextmanager
    def behaving(self, **behaviour: object) -> Iterator[None]:
        """Change the responses of GetMetricData within the block; see ``moto_with_more.py``."""
        file = self.folder / "behaviour.json"
        file.write_text(json.dumps(behaviour))
        try:
            yield
        finally:
            file.unlink()

    def _require_authentication(self) -> None:
        with closing(HTTPConnection(LOOPBACK, self.port, timeout=GIVE_UP)) as connection:
            connection.request("POST", "/moto-api/reset-auth", "0", {"Content-Type": "text/plain"})
            assert connection.getresponse().status == HTTPStatus.OK

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, self.port)) == 0


def _allow(*actions: str) -> Json:
    return {"Effect": "Allow", "Action": list(actions), "Resource": "*"}


class MotoPeer(HttpPeer):
    """An AWS service on a moto server, used by a user with read permissions whose keys are in files."""

    verified_against = VERIFIED_AGAINST
    may: ClassVar[tuple[str, ...]]
    user = "reader"

    def start(self) -> None:
        self.server = MotoServer(self.folder / "server")
        self.server.start()
        self.server.add_user(self.user, *self.may)
        self.key = self.server.add_key(self.user)
        self.secrets = (self.key.secret,)
        self.renew_credentials()
        self.proxy.upstream = (LOOPBACK, self.server.port)

    def stop(self) -> None:
        self.server.stop()

    @cached_property
    def key_files(self) -> tuple[Path, Path]:
        return self.folder / "key-id", self.folder / "key-secret"

    def settings(self) -> Json:
        name, secret = self.key_files
        return {
            "region": REGION,
            "endpointUrl": self.proxy.url,
            "accessKeyIdFile": str(name),
            "secretAccessKeyFile": str(secret),
        }

    def expire_credentials(self) -> None:
        self.server.remove_key(self.user, self.key)
        self.key = self.server.add_key(self.user)
        self.secrets = (*self.secrets, self.key.secret)

    def renew_credentials(self) -> None:
        for file, text in zip(self.key_files, self.key, strict=True):
            file.write_text(f"{text}\n")

    def remove_credentials(self) -> None:
        self.key_files[1].unlink()

    @property
    def current_secret(self) -> str:
        return f"{self.key.id} with {self.key.secret}"

    def throttle(self) -> None:
        self.refuse_with(400, "ThrottlingException", "Rate exceeded")

    def reject_credentials(self) -> None:
        self.refuse_with(403, "AccessDeniedException", f"{self.current_secret} is not authorized")

    def refuse_with(self, status: int, code: str, message: str) -> None:
        """Respond to all requests with an error of the AWS JSON protocol."""
        body = json.dumps({"__type": f"com.amazonaws#{code}", "message": message}).encode()
        self.proxy.respond_http(status, body, "Content-Type: application/x-amz-json-1.0", "Connection: close")
