from adapter.telemetry import Telemetry


async def _yes(_: str) -> bool:
    return True


def test_counts_become_figures_when_someone_looks():
    telemetry = Telemetry()
    for code in ("200", "200", "404"):
        telemetry.requests.add("metric", code)
    text, content_type = telemetry.render()

    assert content_type.startswith("text/plain; version=0.0.4")
    assert b'steadyscale_requests_total{code="200",endpoint="metric"} 2.0' in text
    assert b'steadyscale_requests_total{code="404",endpoint="metric"} 1.0' in text


def test_durations_are_counted_up_to_each_edge():
    telemetry = Telemetry()
    for seconds in (0.001, 0.002, 60.0):
        telemetry.latency.add("metric", seconds)

    def upto(edge: str) -> float | None:
        labels = {"endpoint": "metric", "le": edge}
        return telemetry.registry.get_sample_value("steadyscale_request_duration_seconds_bucket", labels)

    assert [upto(edge) for edge in ("0.001", "0.0025", "10.0", "+Inf")] == [1, 2, 2, 3]
    assert (
        telemetry.registry.get_sample_value("steadyscale_request_duration_seconds_sum", {"endpoint": "metric"})
        == 60.003
    )


async def test_a_review_is_counted_when_it_is_sent():
    telemetry = Telemetry()
    review = telemetry.counting("token", _yes)

    assert await review("t")
    assert telemetry.registry.get_sample_value("steadyscale_reviews_total", {"kind": "token"}) == 1
