"""Which queries are quarantined; time is an argument."""

from adapter.backends.resilience.quarantine import Quarantine, Quarantined


def test_queries_of_a_batch_are_quarantined_after_its_second_timeout() -> None:
    quarantine = Quarantine()
    quarantine.record_timeout(["a", "b"], 5)
    assert quarantine.get("a") is quarantine.get("b") is None
    quarantine.record_timeout(["a", "b"], 15)
    assert quarantine.get("a") == quarantine.get("b") == Quarantined(is_slow=True)


def test_success_between_two_timeouts_resets_the_count() -> None:
    quarantine = Quarantine()
    quarantine.record_timeout(["a"], 5)
    quarantine.record_success(["a"])
    quarantine.record_timeout(["a"], 15)
    assert quarantine.get("a") is None


def test_query_that_is_twice_in_a_batch_counts_once() -> None:
    quarantine = Quarantine()
    quarantine.record_timeout(["a", "a"], 5)
    assert quarantine.get("a") is None


def test_backoff_of_a_slow_query_doubles_up_to_a_minute() -> None:
    quarantine = Quarantine()
    backoffs = []
    for now in range(5):
        quarantine.record_timeout(["a"], now)
        entry = quarantine.get("a")
        backoffs.append(entry and (entry.backoff, entry.retry_at))
    assert backoffs == [None, (0, 0), (30, 32), (60, 63), (60, 64)]


def test_success_ends_the_quarantine_of_slow_and_of_invalid_queries() -> None:
    quarantine = Quarantine()
    for now in range(3):
        quarantine.record_timeout(["slow"], now)
    quarantine.record_invalid("invalid")
    quarantine.record_success(["slow", "invalid"])
    assert len(quarantine) == 0


def test_invalid_query_is_quarantined_without_backoff() -> None:
    quarantine = Quarantine()
    quarantine.record_invalid("a")
    assert quarantine.get("a") == Quarantined(is_slow=False, backoff=0, retry_at=0)


def test_number_of_quarantined_queries_is_bounded() -> None:
    quarantine = Quarantine()
    for number in range(5000):
        quarantine.record_invalid(str(number))
    assert len(quarantine) == 4096
