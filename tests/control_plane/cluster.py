"""Starts the programs of the control plane and gives tests access to it."""

import json
import secrets
import socket
import ssl
import subprocess
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.control_plane.certificates import Authority, Credentials
from tests.control_plane.process import Program

LOOPBACK: Final = "127.0.0.1"
FRONT_PROXY: Final = "front-proxy-client"
_UNASSIGNED_PORTS: Final = range(15_000, 32_000)
"""Below net.ipv4.ip_local_port_range, from which the kernel assigns the ports of outgoing connections."""


@dataclass(frozen=True)
class ControlPlane:
    """A running cluster without nodes."""

    folder: Path
    server: str
    authority: Authority
    """Signs user certificates and the serving certificate of the API server."""
    front_proxy_authority: Authority
    """Signs the certificate with which the API server authenticates to aggregated servers."""
    front_proxy: Credentials
    """That certificate; tests use it to act as the API server."""
    kubectl_path: Path
    etcd_url: str
    etcd: Program
    apiserver: Program
    controller_manager: Program

    def kubectl(self, *arguments: str, stdin: str | None = None, user: str = "admin", check: bool = True) -> str:
        """Run kubectl as ``user`` and return its output; raise with its stderr on failure."""
        command = [str(self.kubectl_path), f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def get(self, *arguments: str) -> Any:
        """Run `kubectl get … -o json`."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def compact(self) -> None:
        """Compact etcd to the last revision; the watch cache of the API server remains until it is restarted."""
        last = self._etcd("/v3/kv/range", {"key": b64encode(b"/").decode()})["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": last, "physical": True})

    def _etcd(self, path: str, body: dict[str, Any]) -> Any:
        with urllib.request.urlopen(self.etcd_url + path, json.dumps(body).encode(), timeout=10) as response:  # noqa: S310
            return json.loads(response.read())

    def kubeconfig(self, user: str, *, groups: tuple[str, ...] = ()) -> Path:
        """Return the kubeconfig of a user with a client certificate; create it if it does not exist."""
        path = self.folder / f"{user}.kubeconfig"
        if not path.exists():
            certificate, key = self.authority.client(user, groups).save(self.folder, user)
            self._write_kubeconfig(path, {"client-certificate": str(certificate), "client-key": str(key)})
        return path

    def kubeconfig_with_token(self, user: str, token: str) -> Path:
        """Return the kubeconfig of a user with a bearer token."""
        path = self.folder / f"{user}.kubeconfig"
        self._write_kubeconfig(path, {"token": token})
        return path

    def _write_kubeconfig(self, path: Path, user: dict[str, str]) -> None:
        cluster = {"server": self.server, "certificate-authority": str(self.folder / "ca.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "loopback", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "it", "context": {"cluster": "loopback", "user": "user"}}],
            "current-context": "it",
        }
        path.write_text(json.dumps(config))
        path.chmod(0o600)


@contextmanager
def control_plane(
    folder: Path, programs: dict[str, Path], *, apiserver_flags: Sequence[str] = ()
) -> Iterator[ControlPlane]:
    """Run a control plane until the end of the block."""
    plane = _wire(folder, programs, apiserver_flags)
    running: list[Program] = []
    try:
        for program in (plane.etcd, plane.apiserver, plane.controller_manager):
            running.append(program)
            program.start()
        yield plane
    finally:
        for program in reversed(running):
            program.stop()


def free_port() -> int:
    """Return a free port on loopback that the kernel assigns to no connection of another test."""
    while True:
        port = secrets.choice(_UNASSIGNED_PORTS)
        with suppress(OSError), socket.socket() as probe:
            probe.bind((LOOPBACK, port))
            return port


def _wire(folder: Path, programs: dict[str, Path], apiserver_flags: Sequence[str]) -> ControlPlane:
    authority, front_proxy_authority = Authority.new("cluster"), Authority.new("front-proxy")
    front_proxy = front_proxy_authority.client(FRONT_PROXY)
    authority.own.save(folder, "ca")
    front_proxy_authority.own.save(folder, "front-proxy-ca")
    front_proxy.save(folder, "front-proxy")
    authority.server(LOOPBACK, "localhost", "kubernetes.default.svc", "10.0.0.1").save(folder, "apiserver")
    _save_signing_key(folder / "service-account.key")
    etcd_port, peer_port, api_port, manager_port = (free_port() for _ in range(4))
    etcd_url, server = f"http://{LOOPBACK}:{etcd_port}", f"https://{LOOPBACK}:{api_port}"
    verified = ssl.create_default_context(cafile=folder / "ca.crt")
    unverified = ssl._create_unverified_context()  # noqa: S323 - self-signed, health check only
    plane = ControlPlane(
        folder=folder,
        server=server,
        authority=authority,
        front_proxy_authority=front_proxy_authority,
        front_proxy=front_proxy,
        kubectl_path=programs["kubectl"],
        etcd_url=etcd_url,
        etcd=Program(
            [programs["etcd"], *_etcd_flags(folder, etcd_url, f"http://{LOOPBACK}:{peer_port}")],
            folder / "etcd.log",
            lambda: _is_healthy(f"{etcd_url}/health", None),
        ),
        apiserver=Program(
            [programs["kube-apiserver"], *_apiserver_flags(folder, etcd_url, api_port), *apiserver_flags],
            folder / "kube-apiserver.log",
            lambda: _is_healthy(f"{server}/readyz", verified),
        ),
        controller_manager=Program(
            [programs["kube-controller-manager"], *_manager_flags(folder, manager_port)],
            folder / "kube-controller-manager.log",
            lambda: _is_healthy(f"https://{LOOPBACK}:{manager_port}/healthz", unverified),
        ),
    )
    plane.kubeconfig("admin", groups=("system:masters",))
    plane.kubeconfig("system:kube-controller-manager")
    return plane


def _etcd_flags(folder: Path, url: str, peer_url: str) -> list[str]:
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
    ]


def _apiserver_flags(folder: Path, etcd_url: str, port: int) -> list[str]:
    return [
        f"--etcd-servers={etcd_url}",
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",  # a loopback address cannot be advertised
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'apiserver.crt'}",
        f"--tls-private-key-file={folder / 'apiserver.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--service-account-key-file={folder / 'service-account.key'}",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=Node,RBAC",
        f"--requestheader-client-ca-file={folder / 'front-proxy-ca.crt'}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={folder / 'front-proxy.crt'}",
        f"--proxy-client-key-file={folder / 'front-proxy.key'}",
        "--disable-admission-plugins=ServiceAccount",
    ]


def _manager_flags(folder: Path, port: int) -> list[str]:
    kubeconfig = folder / "system:kube-controller-manager.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={folder / 'service-account.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--horizontal-pod-autoscaler-sync-period=2s",  # shortens the tests
    ]


def _save_signing_key(path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem, traditional = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(pem, traditional, serialization.NoEncryption()))


def _is_healthy(url: str, tls: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1, context=tls) as response:  # noqa: S310 - a loopback address
            return bool(response.status == 200)
    except OSError:
        return False
