"""Requests to Prometheus' HTTP API as prometheus-api-client builds them, not sent yet."""

from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlencode


class ApiRequest:
    """A request that prometheus-api-client takes for a response and returns to its caller.

    The library returns ``response.json()["data"]["result"]``, so this object returns itself for each of these steps.
    """

    status_code = HTTPStatus.OK

    def __init__(self, method: str, target: str, parameters: dict[str, Any]) -> None:
        is_get = method == "GET"
        self.method = method
        self.target = f"{target}?{urlencode(parameters)}" if is_get else target
        self.form = None if is_get else parameters

    def json(self) -> Self:
        return self

    def __getitem__(self, _: str) -> Self:
        return self


class RecordingSession:
    """The session of prometheus-api-client: it returns each request instead of sending it."""

    verify = cert = None

    def mount(self, *_: object) -> None:
        """Ignore the library's transport adapter."""

    def request(self, method: str, url: str, params: dict[str, Any], **_: object) -> ApiRequest:
        return ApiRequest(method, url, params)

    def get(self, url: str, params: dict[str, Any], **_: object) -> ApiRequest:
        return ApiRequest("GET", url, params)
