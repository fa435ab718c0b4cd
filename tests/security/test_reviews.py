"""Floods of unknown tokens and made-up paths: few reviews reach the API server, and known callers are still served."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import aiohttp
import pytest
from aiohttp import web

from adapter.auth.attributes import NonResourceAttributes, ResourceAttributes
from adapter.auth.authentication import ANONYMOUS, Caller
from adapter.auth.authorizer import SubjectAccessAuthorizer
from adapter.auth.tokens import TokenAuthenticator
from adapter.config.model import Auth, Limits
from adapter.errors import AccessDenied, AdapterError, TooManyReviews, Unauthenticated
from adapter.server.accounting import LineBudget
from autoscaler.kube.reviews import AccessDecision, Subject
from tests.loopback import Loopback, Reviews, loopback

FLOOD: Final = 10_000
FEW: Final = 200
METRIC: Final = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/whole"


def request_with(token: str, source: str = "10.0.0.1") -> web.BaseRequest:
    return cast("web.BaseRequest", SimpleNamespace(headers={"Authorization": f"Bearer {token}"}, remote=source))


def token_authenticator(reviews: Reviews) -> TokenAuthenticator:
    """Return an authenticator for which no time passes, so that a slow test gives no budget back."""
    tokens = TokenAuthenticator(reviews.token, Auth())
    tokens._budget._timer = tokens._cache._timer = lambda: 0.0
    return tokens


async def test_unknown_tokens_cause_few_reviews():
    reviews = Reviews()
    tokens = token_authenticator(reviews)
    for number in range(FLOOD):
        with pytest.raises((TooManyReviews, Unauthenticated)):
            await tokens.authenticate(request_with(f"random-{number}"))

    assert len(reviews.tokens) < FEW


async def test_new_valid_tokens_cause_few_reviews():
    reviewed: list[str] = []

    async def review(token: str) -> Subject:
        reviewed.append(token)
        return Subject("system:serviceaccount:team:robot", "", (), {})

    tokens = TokenAuthenticator(review, Auth())
    tokens._budget._timer = lambda: 0.0
    for number in range(FLOOD):
        with suppress(TooManyReviews):
            await tokens.authenticate(request_with(f"created-{number}"))
    count = len(reviewed)
    await tokens.authenticate(request_with("created-0"))

    assert count < FEW
    assert len(reviewed) == count


async def test_reviews_in_progress_of_one_source_address_leave_some_for_another():
    ends, reviewed = asyncio.Event(), []

    async def review(token: str) -> None:
        reviewed.append(token)
        if token != "other":  # noqa: S105
            await ends.wait()

    tokens = TokenAuthenticator(review, Auth())
    flood = [asyncio.create_task(tokens.authenticate(request_with(f"random-{number}"))) for number in range(FEW)]
    await asyncio.sleep(0)
    while len(reviewed) + sum(attempt.done() for attempt in flood) < FEW:  # noqa: ASYNC110
        await asyncio.sleep(0)
    with pytest.raises(Unauthenticated):  # reviewed, not refused as too many
        await tokens.authenticate(request_with("other", "10.0.0.2"))
    ends.set()
    await asyncio.gather(*flood, return_exceptions=True)

    assert reviewed[-1] == "other"


async def test_flood_of_unknown_tokens_does_not_evict_a_valid_one():
    reviews = Reviews()
    tokens = token_authenticator(reviews)
    tokens._budget._burst = 2 * FLOOD  # as if the flood came from many addresses over hours
    await tokens.authenticate(request_with("good"))
    for number in range(FLOOD):
        with pytest.raises(Unauthenticated):
            await tokens.authenticate(request_with(f"random-{number}"))
    reviews.tokens.clear()
    await tokens.authenticate(request_with("good"))

    assert reviews.tokens == []


async def test_token_that_was_valid_is_reviewed_again_during_a_flood():
    reviews = Reviews()
    tokens = token_authenticator(reviews)
    await tokens.authenticate(request_with("good"))
    for number in range(FEW):
        with pytest.raises((TooManyReviews, Unauthenticated)):
            await tokens.authenticate(request_with(f"random-{number}"))
    tokens._cache._timer = lambda: 1e9  # every result has expired
    reviews.tokens.clear()

    assert await tokens.authenticate(request_with("good")) is not None
    assert reviews.tokens == ["good"]


class AccessReviews:
    """Counts reviews and allows what the test says."""

    def __init__(self, *, allowed: bool) -> None:
        self.count = 0
        self._allowed = allowed

    async def review(self, _subject: Subject, _attributes: dict[str, Any]) -> AccessDecision:
        self.count += 1
        return AccessDecision(self._allowed, "")


@pytest.mark.parametrize(
    ("caller", "allowed"), [(ANONYMOUS, False), (Caller("mallory"), False), (Caller("team"), True)]
)
async def test_made_up_paths_cause_few_reviews(caller: Caller, *, allowed: bool):
    reviews = AccessReviews(allowed=allowed)
    authorizer = SubjectAccessAuthorizer(reviews.review, Auth())
    authorizer._anonymous._timer = authorizer._authenticated._timer = lambda: 0.0
    for number in range(FLOOD):
        try:
            await authorizer.authorize(caller, NonResourceAttributes("get", f"/apis/{number}"), "10.0.0.1")
        except (TooManyReviews, AccessDenied):
            continue

    assert reviews.count < 2 * FEW


async def test_caller_that_may_read_metrics_can_read_any_number_of_them():
    reviews = AccessReviews(allowed=True)
    authorizer = SubjectAccessAuthorizer(reviews.review, Auth())
    for number in range(FLOOD):
        await authorizer.authorize(Caller("hpa"), ResourceAttributes("list", "g", "v", "shop", f"metric-{number}"), "")

    assert reviews.count == FLOOD


async def test_budget_of_one_source_address_does_not_bind_another():
    authorizer = SubjectAccessAuthorizer(AccessReviews(allowed=False).review, Auth())
    results: list[type[AdapterError]] = []
    for source in ["10.0.0.1"] * FEW + ["10.0.0.2"]:
        try:
            await authorizer.authorize(ANONYMOUS, NonResourceAttributes("get", f"/{len(results)}"), source)
        except AdapterError as error:
            results.append(type(error))

    assert TooManyReviews in results
    assert results[-1] is AccessDenied


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("loopback"), Limits(max_concurrent_requests=20)) as running:
        yield running


async def test_known_caller_is_served_during_a_flood_of_tokens(service: Loopback):
    def connector() -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=service.ca), limit=16)

    async def attack(session: aiohttp.ClientSession, number: int) -> int:
        async with session.get(METRIC, headers={"Authorization": f"Bearer random-{number}"}) as response:
            return response.status

    good = {"Authorization": "Bearer good"}
    async with (
        aiohttp.ClientSession(service.url, connector=connector()) as attacker,
        aiohttp.ClientSession(service.url, connector=connector(), headers=good) as known,
    ):
        attacks = [asyncio.create_task(attack(attacker, number)) for number in range(500)]
        statuses = []
        while not all(attack.done() for attack in attacks):
            async with known.get(METRIC) as response:
                statuses.append(response.status)
        rejected = await asyncio.gather(*attacks)

    assert set(statuses) == {200}
    assert set(rejected) == {401, 429}
    assert len(service.reviews.tokens) < FEW


async def test_concurrency_limit_applies_before_the_access_review(tmp_path: Path):
    limits = Limits(max_concurrent_requests=1, request_timeout=timedelta(seconds=30), drain_timeout=timedelta(0))
    with loopback(tmp_path, limits) as running:
        tls = ssl.create_default_context(cafile=running.ca)
        tls.load_cert_chain(*running.credentials("alice"))
        async with aiohttp.ClientSession(running.url, connector=aiohttp.TCPConnector(ssl=tls)) as session:
            slow = asyncio.create_task(session.get(METRIC.replace("whole", "slow")))
            while not running.reviews.access_reviews:  # noqa: ASYNC110 - in another thread
                await asyncio.sleep(0.01)
            running.reviews.access_reviews.clear()
            async with session.get(METRIC) as response:
                assert response.status == 429
            assert running.reviews.access_reviews == []
            slow.cancel()


def test_clients_without_credentials_cannot_fill_the_log():
    now = 0.0
    budget = LineBudget(lambda: now)
    written = sum(budget.take() for _ in range(FLOOD))
    now = 1.0

    assert written <= FEW
    assert budget.omitted == FLOOD - written
    assert budget.take()
