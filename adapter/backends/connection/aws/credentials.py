"""Who we say we are to AWS: keys from files, or the platform's own chain, and a role that is assumed with either."""

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
from adapter.backends.connection.aws.thread_runner import Aside
from adapter.backends.connection.secret_file import Hidden, SecretFile
from adapter.errors import BackendError, BackendUnauthorized

_SESSION: Final = "steadyscale"
_NONE: Final = "there are no credentials: the platform gives none, and accessKeyIdFile is not set"


class Credentials:
    """What aiobotocore signs with: it asks before every request."""

    method = "steadyscale"

    def __init__(self, settings: AwsSettings, config: AioConfig, aside: Aside) -> None:
        self._settings = settings
        self._aside = aside
        self._config = config
        files = {
            "accessKeyIdFile": settings.access_key_id_file,
            "secretAccessKeyFile": settings.secret_access_key_file,
            "sessionTokenFile": settings.session_token_file,
        }
        self._files = [SecretFile(path, setting) for setting, path in files.items() if path]
        self.hidden = Hidden()
        """What was ever shown, to be taken out of whatever is told."""

        self._turn = asyncio.Lock()
        self._keys: tuple[str, ...] = ()
        self._found: Any = None

    async def load_credentials(self) -> "Credentials":
        """Be what a session looks for its credentials in."""
        return self

    async def get_account_id(self) -> None:
        """Say nothing: no address of ours depends on it."""

    def get_deferred_property(self, _: str) -> Callable[[], None]:
        """Say nothing of anything else, either."""
        return lambda: None

    async def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Give what to sign with now; raise a ``BackendError`` if there is nothing."""
        async with self._turn:
            try:
                frozen = await self._current()
            except BackendError:
                raise
            except Exception as error:  # noqa: BLE001 - the chain has a dozen links, each with its own
                raise errors.of_credentials(error) from None
        self.hidden.hide(*(each for each in (frozen.access_key, frozen.secret_key, frozen.token) if each))
        return frozen

    def forget(self) -> None:
        """Look for them from the beginning next time: these were not believed."""
        self._found = None

    async def _current(self) -> ReadOnlyCredentials:
        if self._files:
            keys = await asyncio.to_thread(self._read)
            if keys != self._keys:
                self._keys, self._found = keys, None
        if self._found is None:
            self._found = await self._look()
        found = self._found
        if isinstance(found, RefreshableCredentials) and found.refresh_needed():
            return await self._aside.run(found.get_frozen_credentials)  # it reads tokens from files, and asks others
        return await found.get_frozen_credentials()

    def _read(self) -> tuple[str, ...]:
        return tuple(file.read_now() for file in self._files)

    async def _look(self) -> Any:  # noqa: ANN401 - aiobotocore has several kinds
        """Find who we are, and what role that is to play."""
        session = await asyncio.to_thread(AioSession)
        session.set_default_client_config(self._config)
        session.set_config_variable("region", region_of(self._settings))  # for STS, which the chain may ask
        source = AioCredentials(*self._keys) if self._keys else await self._by_chain(session)
        if source is None:
            raise BackendUnauthorized(_NONE)
        return self._assuming(session, source) if self._settings.role_arn else source

    async def _by_chain(self, session: AioSession) -> Any:  # noqa: ANN401 - likewise
        chain = await asyncio.to_thread(session.get_component, "credential_provider")  # reads files already
        return await self._aside.run(chain.load_credentials)

    def _assuming(self, session: AioSession, source: object) -> AioDeferredRefreshableCredentials:
        wanted = {"RoleSessionName": _SESSION}
        if self._settings.external_id:
            wanted["ExternalId"] = self._settings.external_id
        fetcher = AioAssumeRoleCredentialFetcher(
            client_creator=partial(session.create_client, region_name=region_of(self._settings)),
            source_credentials=source,
            role_arn=self._settings.role_arn,
            extra_args=wanted,
        )
        return AioDeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")

    def __repr__(self) -> str:
        return "Credentials()"


def region_of(settings: AwsSettings) -> str | None:
    """Say where to ask; None: aiobotocore finds out. It does not know the variable that everyone else sets."""
    return settings.region or os.environ.get("AWS_REGION") or None
