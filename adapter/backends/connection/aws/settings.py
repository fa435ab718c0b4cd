"""How a service of AWS is reached, and who we say we are."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from adapter.backends.connection.urls import url_problems
from adapter.backends.settings import BackendSettings, CircuitBreakerSettings, at_least_one

_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_ROLE: Final = re.compile(r"arn:[\w-]+:iam::\d{12}:role/[\w+=,.@/-]+", re.ASCII)


class AwsSettings(BackendSettings, frozen=True):
    """One service of AWS, with one identity."""

    library: ClassVar[tuple[str, ...]] = ("aiobotocore",)
    extra: ClassVar[str] = "aws"

    region: str = ""
    """Where to ask, such as ``eu-west-1``; a rule may name another. Left out: as the platform's ``AWS_REGION`` says."""

    endpoint_url: str = ""
    """Where the service is, if not at its usual address: a VPC endpoint, or something that answers like it."""

    access_key_id_file: str = ""
    """A key of our own, for where the platform has no identity for us: its name, read before every request. Left out:
    the platform's own chain, which is environment, IRSA, shared files, EKS Pod Identity, instance metadata."""

    secret_access_key_file: str = ""
    """The secret that belongs to it, read likewise."""

    session_token_file: str = ""
    """The token of a temporary key, read likewise."""

    role_arn: str = ""
    """A role to assume with that identity, such as one of another account; renewed before it ends."""

    external_id: str = ""
    """What the role's trust policy wants to hear, if it does."""

    proxy_url: str = ""
    """An HTTP proxy on the way. The environment's are not used: they would be a hop nobody sees here."""

    connections: int = 10
    """Requests in flight at once, in each region."""

    breaker: CircuitBreakerSettings = CircuitBreakerSettings()

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from region_problems(self.region, f"{at}.region")
        for key, url in (("endpointUrl", self.endpoint_url), ("proxyUrl", self.proxy_url)):
            yield from url_problems(url, f"{at}.{key}")
        yield from self._key_problems(at)
        if self.role_arn and not _ROLE.fullmatch(self.role_arn):
            yield f"{at}.roleArn: must be as arn:aws:iam::123456789012:role/NAME"
        if self.external_id and not self.role_arn:
            yield f"{at}.externalId: is for roleArn, which is not there"
        yield from at_least_one({"connections": self.connections, "breaker.failures": self.breaker.failures}, at)

    def _key_problems(self, at: str) -> Iterator[str]:
        if self.access_key_id_file and not self.secret_access_key_file:
            yield f"{at}.secretAccessKeyFile: is needed with accessKeyIdFile"
        elif not self.access_key_id_file and self.secret_access_key_file:
            yield f"{at}.accessKeyIdFile: is needed with secretAccessKeyFile"
        elif self.session_token_file and not self.access_key_id_file:
            yield f"{at}.accessKeyIdFile: is needed with sessionTokenFile"


def region_problems(region: str, at: str) -> Iterator[str]:
    """Say what is wrong with the name of a region: it becomes part of a host's name."""
    if region and not _REGION.fullmatch(region):
        yield f"{at}: must be the name of a region, such as eu-west-1"
