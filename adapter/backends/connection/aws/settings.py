"""The settings of backends that are AWS services."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from adapter.backends.connection.urls import url_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, count_problems
from adapter.decoding.problem import Problem

_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_ROLE: Final = re.compile(r"arn:[\w-]+:iam::\d{12}:role/[\w+=,.@/-]+", re.ASCII)


class AwsSettings(BackendSettings, frozen=True):
    """One AWS service, used with one identity."""

    required_modules: ClassVar[tuple[str, ...]] = ("aiobotocore",)
    extra: ClassVar[str] = "aws"

    region: str = ""
    """The region, such as ``eu-west-1``; a rule can name another one. Default: the variable ``AWS_REGION``."""

    endpoint_url: str = ""
    """The URL of the service if it is not the default one: a VPC endpoint or a compatible service."""

    access_key_id_file: str = ""
    """File of an access key ID, read before every request. Default: AWS' credential provider chain, which consists of
    environment variables, IRSA, shared files, EKS Pod Identity and instance metadata."""

    secret_access_key_file: str = ""
    """File of the secret access key, read before every request."""

    session_token_file: str = ""
    """File of the session token of temporary credentials, read before every request."""

    role_arn: str = ""
    """A role to assume with that identity, such as a role of another account; renewed before it expires."""

    external_id: str = ""
    """The external ID, if the role's trust policy requires one."""

    proxy_url: str = ""
    """An HTTP proxy. Proxy environment variables are ignored."""

    max_connections: int = 10
    """How many requests can be in flight in each region."""

    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, path: str) -> Iterator[Problem]:
        yield from region_problems(self.region, f"{path}.region")
        for key, url in (("endpointUrl", self.endpoint_url), ("proxyUrl", self.proxy_url)):
            yield from url_problems(url, f"{path}.{key}")
        yield from self._key_problems(path)
        if self.role_arn and not _ROLE.fullmatch(self.role_arn):
            yield Problem(f"{path}.roleArn", "must have the form arn:aws:iam::123456789012:role/NAME")
        if self.external_id and not self.role_arn:
            yield Problem(f"{path}.externalId", "requires roleArn")
        counts = {"maxConnections": self.max_connections}
        yield from count_problems(
            {**counts, "circuitBreaker.failureThreshold": self.circuit_breaker.failure_threshold}, path
        )

    def _key_problems(self, path: str) -> Iterator[Problem]:
        if self.access_key_id_file and not self.secret_access_key_file:
            yield Problem(f"{path}.secretAccessKeyFile", "required with accessKeyIdFile")
        elif not self.access_key_id_file and self.secret_access_key_file:
            yield Problem(f"{path}.accessKeyIdFile", "required with secretAccessKeyFile")
        elif self.session_token_file and not self.access_key_id_file:
            yield Problem(f"{path}.accessKeyIdFile", "required with sessionTokenFile")


def region_problems(region: str, path: str) -> Iterator[Problem]:
    """Return the problem of a region's name, which becomes part of a host name."""
    if region and not _REGION.fullmatch(region):
        yield Problem(path, "must be the name of a region, such as eu-west-1")
