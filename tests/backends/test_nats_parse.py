"""What JetStream may answer, and what files of keys may hold."""

import math
from datetime import UTC, datetime

import pytest

from adapter.backends.nats.nkey import credentials, nkey
from adapter.backends.nats.parse import Consumer, Page, Stream, decoded, samples
from adapter.backends.nats.settings import NatsParameters
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from autoscaler.types.observation import FailureClass
from tests.backends.nats_keys import Key

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_who_is_missing_on_a_page_is_no_number_and_not_left_out() -> None:
    page = decoded(b'{"total":2,"streams":[{"config":{"name":"a"},"state":{"messages":4}}],"missing":["b"]}', Page)
    assert page is not None
    assert page.size == 2
    of_streams = list(samples(NatsParameters(reads="messages"), [page], NOW))
    assert [(each.labels, each.value) for each in of_streams[:1]] == [({"stream": "a"}, 4)]
    assert of_streams[1].labels == {"stream": "b"}
    assert math.isnan(of_streams[1].value)
    page = decoded(b'{"total":1,"consumers":null,"missing":["c"]}', Page)
    (of_consumer,) = samples(NatsParameters(stream="a"), [page] if page else [], NOW)
    assert of_consumer.labels == {"stream": "a", "consumer": "c"}
    assert math.isnan(of_consumer.value)


def test_a_number_that_is_not_said_is_none() -> None:
    consumer = decoded(b'{"name":"c","stream_name":"s","num_pending":3}', Consumer)
    (sample,) = samples(NatsParameters(stream="s", consumer="c"), [consumer] if consumer else [], NOW)
    assert math.isnan(sample.value)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"nonsense", b'{"config":{}}', b'{"config":{"name":"a"},"state":{"messages":"4"}}', b"[" * 9999],
)
def test_nonsense_is_refused(body: bytes) -> None:
    with pytest.raises(BackendRejected) as caught:
        decoded(body, Stream)
    assert caught.value.message == "it answers, but not as JetStream does"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        ('{"code":503,"err_code":10008}', FailureClass.REFUSED, "JetStream answers with an error"),
        ('{"code":503,"err_code":10039}', FailureClass.REFUSED, "JetStream is not enabled for this account"),
        ('{"code":403,"err_code":1}', FailureClass.UNAUTHORIZED, "the user may not ask that"),
    ],
)
def test_errors_of_jetstream_are_told_by_their_class(error: str, kind: FailureClass, words: str) -> None:
    with pytest.raises(BackendError) as caught:
        decoded(f'{{"error":{error}}}'.encode(), Stream)
    assert (caught.value.failure, caught.value.message) == (kind, words)


def test_seeds_and_credentials_that_are_none_are_told_by_their_setting() -> None:
    seed = Key("user").seed
    changed = seed[:20] + ("A" if seed[20] != "A" else "B") + seed[21:]
    assert nkey(seed, "nkeyFile").public.startswith("U")
    for wrong in ("", "nonsense", seed[:-1], changed, Key("account").seed, "ß"):
        with pytest.raises(BackendUnauthorized) as caught:
            nkey(wrong, "nkeyFile")
        assert caught.value.message == "nkeyFile holds no seed of a user's nkey"
    for lines in ([], ["-----BEGIN NATS USER JWT-----"], ["-----BEGIN USER NKEY SEED-----", seed]):
        with pytest.raises(BackendUnauthorized) as caught:
            credentials(lines, "credentialsFile")
        assert caught.value.message == "credentialsFile holds no JWT with a seed"
