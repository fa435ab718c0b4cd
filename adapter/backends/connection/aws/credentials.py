"""AWS credentials: from files or from AWS' provider chain, with an optional role that is assumed with them."""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from aiobotocore.config import AioConfig
from aiobotocore.credentials import AioAssumeRoleCredentialFetcher, AioCredentials, AioDeferredRefreshableCredentials
from aiobotocore.session import AioSession
from botocore.credentials import ReadOnlyCredentials, RefreshableCredentials

from adapter.backends.connection.aws import errors
from adapter.backends.connection.aws.settings import AwsSettings
from adapter.backends.connection.aws.thread_runner import ThreadRunner
from adapter.backends.connection.secret_file import Redactor, SecretFile
from adapter.errors import BackendError, BackendUnauthorized

_ROLE_SESSION: Final = "steadyscale"
_NO_CREDENTIALS: Final = "no AWS credentials: set accessKeyIdFile or configure the provider chain"


class AwsCredentials:
    """The credential provider of an aiobotocore session, and also its credentials, which are read for each request."""

    method = "steadyscale"

    def __init__(self, settings: AwsSettings, config: AioConfig, thread_runner: ThreadRunner) -> None:
        self._settings = settings
        self._thread_runner = thread_runner
        self._config = config
        files = {
            "accessKeyIdFile": settings.access_key_id_file,
            "secretAccessKeyFile": settings.secret_access_key_file,
            "sessionTokenFile": settings.session_token_file,
        }
        self._files = [SecretFile(path, setting) for setting, path in files.items() if path]
        self.redactor = Redactor()
        self._lock = asyncio.Lock()
        self._keys: tuple[str, ...] = ()
        self._source: Any = None

    async def load_credentials(self) -> "AwsCredentials":
        return self

    async def get_account_id(self) -> None:
        """Return None: no endpoint depends on the account."""

    def get_deferred_property(self, _: str) -> Callable[[], None]:
        """Return a function without a result: no endpoint depends on other properties."""
        return lambda: None

    async def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Return the current credentials; raise ``BackendError`` if there are none."""
        async with self._lock:
            try:
                frozen = await self._current()
            except BackendError:
                raise
            except Exception as error:  # noqa: BLE001 - each provider of the chain raises its own exceptions
                raise errors.from_credentials(error) from None
        self.redactor.add(*(text for text in (frozen.access_key, frozen.secret_key, frozen.token) if text))
        return frozen

    def reset(self) -> None:
        """Resolve the credentials again for the next request, because AWS rejected these."""
        self._source = None

    async def _current(self) -> ReadOnlyCredentials:
        if self._files:
            keys = await asyncio.to_thread(lambda: tuple(file.read_sync() for file in self._files))
            if keys != self._keys:
                self._keys, self._source = keys, None
        if self._source is None:
            self._source = await self._resolve()
        source = self._source
        if isinstance(source, RefreshableCredentials) and source.refresh_needed():
            return await self._thread_runner.run(source.get_frozen_credentials)  # reads token files
        return await source.get_frozen_credentials()

    async def _resolve(self) -> Any:  # noqa: ANN401 - aiobotocore has several types
        session = await asyncio.to_thread(AioSession)
        session.set_default_client_config(self._config)
        session.set_config_variable("region", region_of(self._settings))  # for requests of the chain to STS
        source = AioCredentials(*self._keys) if self._keys else await self._from_chain(session)
        if source is None:
            raise BackendUnauthorized(_NO_CREDENTIALS)
        return self._assumed_role(session, source) if self._settings.role_arn else source

    async def _from_chain(self, session: AioSession) -> Any:  # noqa: ANN401 - aiobotocore has several types
        chain = await asyncio.to_thread(session.get_component, "credential_provider")  # reads files
        return await self._thread_runner.run(chain.load_credentials)

    def _assumed_role(self, session: AioSession, source: object) -> AioDeferredRefreshableCredentials:
        arguments = {"RoleSessionName": _ROLE_SESSION}
        if self._settings.external_id:
            arguments["ExternalId"] = self._settings.external_id
        fetcher = AioAssumeRoleCredentialFetcher(
            client_creator=partial(session.create_client, region_name=region_of(self._settings)),
            source_credentials=source,
            role_arn=self._settings.role_arn,
            extra_args=arguments,
        )
        return AioDeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")

    def __repr__(self) -> str:
        return "AwsCredentials()"


def region_of(settings: AwsSettings) -> str | None:
    """Return the region; None: aiobotocore determines it. aiobotocore itself ignores ``AWS_REGION``."""
    return settings.region or os.environ.get("AWS_REGION") or None
