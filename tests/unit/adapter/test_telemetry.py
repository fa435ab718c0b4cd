from adapter.telemetry import Telemetry


async def _review(_: str) -> bool:
    return True


def test_metrics_are_rendered_in_the_prometheus_text_format():
    telemetry = Telemetry()
    for code in ("200", "200", "404"):
        telemetry.requests.labels("metric", code).inc()
    text, content_type = telemetry.render()

    assert content_type.startswith("text/plain; version=0.0.4")
    assert b"# HELP steadyscale_requests_total Number of requests served.\n" in text
    assert b'steadyscale_requests_total{code="200",endpoint="metric"} 2.0\n' in text
    assert b'steadyscale_requests_total{code="404",endpoint="metric"} 1.0\n' in text


def test_backend_queries_are_counted_with_their_duration():
    telemetry = Telemetry()
    telemetry.record_query("main", "ok", 0.25)
    value = telemetry.registry.get_sample_value

    assert value("steadyscale_backend_queries_total", {"backend": "main", "result": "ok"}) == 1
    assert value("steadyscale_backend_query_duration_seconds_sum", {"backend": "main"}) == 0.25


async def test_each_call_of_a_wrapped_review_is_counted():
    telemetry = Telemetry()
    review = telemetry.count_reviews("token", _review)

    assert await review("t")
    assert telemetry.registry.get_sample_value("steadyscale_reviews_total", {"kind": "token"}) == 1
