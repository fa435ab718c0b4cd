import math
from datetime import UTC, datetime

import pytest

from adapter.backends.nats.nkey import parse_credentials, parse_nkey
from adapter.backends.nats.parse import Consumer, ListPage, Stream, decode_response, samples
from adapter.backends.nats.settings import NatsParameters
from adapter.errors import BackendError, BackendRejected, BackendUnauthorized
from autoscaler.types.observation import FailureClass
from tests.backends.nats_keys import Key

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_missing_entries_of_a_page_are_nan() -> None:
    page = decode_response(
        b'{"total":2,"streams":[{"config":{"name":"a"},"state":{"messages":4}}],"missing":["b"]}', ListPage
    )
    assert page is not None
    assert page.size == 2
    of_streams = list(samples(NatsParameters(measure="messages"), [page], NOW))
    assert [(each.labels, each.value) for each in of_streams[:1]] == [({"stream": "a"}, 4)]
    assert of_streams[1].labels == {"stream": "b"}
    assert math.isnan(of_streams[1].value)
    page = decode_response(b'{"total":1,"consumers":null,"missing":["c"]}', ListPage)
    (of_consumer,) = samples(NatsParameters(stream="a"), [page] if page else [], NOW)
    assert of_consumer.labels == {"stream": "a", "consumer": "c"}
    assert math.isnan(of_consumer.value)


def test_value_that_is_not_in_the_response_is_nan() -> None:
    consumer = decode_response(b'{"name":"c","stream_name":"s","num_pending":3}', Consumer)
    (sample,) = samples(NatsParameters(stream="s", consumer="c"), [consumer] if consumer else [], NOW)
    assert math.isnan(sample.value)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"nonsense", b'{"config":{}}', b'{"config":{"name":"a"},"state":{"messages":"4"}}', b"[" * 9999],
)
def test_unexpected_response_is_rejected(body: bytes) -> None:
    with pytest.raises(BackendRejected) as caught:
        decode_response(body, Stream)
    assert caught.value.message == "unexpected response format"


@pytest.mark.parametrize(
    ("error", "failure", "message"),
    [
        ('{"code":503,"err_code":10008}', FailureClass.REFUSED, "the JetStream API returned an error"),
        ('{"code":503,"err_code":10039}', FailureClass.REFUSED, "JetStream is not enabled for this account"),
        (
            '{"code":403,"err_code":1}',
            FailureClass.UNAUTHORIZED,
            "permission denied: the user may not use the JetStream API",
        ),
    ],
)
def test_errors_of_the_jetstream_api_are_classified(error: str, failure: FailureClass, message: str) -> None:
    with pytest.raises(BackendError) as caught:
        decode_response(f'{{"error":{error}}}'.encode(), Stream)
    assert (caught.value.failure, caught.value.message) == (failure, message)


def test_invalid_seeds_and_credentials_are_reported_with_their_setting() -> None:
    seed = Key("user").seed
    changed = seed[:20] + ("A" if seed[20] != "A" else "B") + seed[21:]
    assert parse_nkey(seed, "nkeyFile").public.startswith("U")
    for wrong in ("", "nonsense", seed[:-1], changed, Key("account").seed, "ß"):
        with pytest.raises(BackendUnauthorized) as caught:
            parse_nkey(wrong, "nkeyFile")
        assert caught.value.message == "nkeyFile does not contain the seed of a user nkey"
    for lines in ([], ["-----BEGIN NATS USER JWT-----"], ["-----BEGIN USER NKEY SEED-----", seed]):
        with pytest.raises(BackendUnauthorized) as caught:
            parse_credentials(lines, "credentialsFile")
        assert caught.value.message == "credentialsFile does not contain a user JWT and an nkey seed"
