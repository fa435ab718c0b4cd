"""GET /debug/autoscalers/NAMESPACE/NAME?whatIf=SPEC, and the same below /debug/history: a replay with an edited spec.

The replay reads what the same path shows without the parameter, so it needs the same permission, and it changes nothing
in the cluster. The spec is in the request line, because the server reads no bodies. An empty parameter returns the
current spec. The leader responds, because only it knows the spec.

A replay runs in a thread. It sleeps after each slice of work, because the event loop waits for the interpreter's lock
while the thread computes.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import yaml
from aiohttp import web

from adapter import errors
from adapter.custom_resources.external_metric import GROUP_VERSION
from adapter.custom_resources.object_problems import autoscaler_problems
from adapter.debug.decision_log import LoggedAutoscaler
from adapter.debug.formatting import Json
from adapter.debug.recorded_load import RecordedLoad
from adapter.debug.what_if import ReplayInput, replay, spec_yaml
from adapter.decoding.documents import MAX_DEPTH
from adapter.decoding.duration import parse_duration
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.decoding.yaml_loader import load_yaml
from adapter.errors import TooManyReplays
from adapter.fair_limit import FairLimit
from adapter.server.leader_forwarding import LeaderForwarding
from adapter.server.request_context import RequestContext
from autoscaler.settings import ControllerOptions
from autoscaler.types.autoscaler import Metadata

WHAT_IF: Final = "whatIf"
MAX_SPEC_BYTES: Final = 16 * 1024
_ACCEPTED: Final = frozenset({200, 400, 404, 422, 429, 503, 504})
_MAX_REPLAYS: Final = 2
"""Concurrent replays of one process; one for each namespace."""

_SLICE: Final = 0.001
_PAUSE: Final = 0.00025
_OPENING: Final = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSING: Final = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_MAX_STARTUP: Final = timedelta(hours=1)


class _Stopped(Exception):
    """The request has ended before the replay."""


class WhatIfEndpoint:
    """Replays of one process."""

    def __init__(self, options: ControllerOptions, forwarding: LeaderForwarding | None, time_limit: timedelta) -> None:
        """Create the endpoint; a replay that takes longer than ``time_limit`` is ended."""
        self.options = options
        self._forwarding = forwarding
        self._seconds = time_limit.total_seconds()
        self._limit = FairLimit(_MAX_REPLAYS, TooManyReplays)

    async def forwarded(self, context: RequestContext) -> web.Response | None:
        """Return the response of the leader; None if this process must respond itself."""
        if self._forwarding is None:
            return None
        response = await self._forwarding.forward(context, None, _ACCEPTED)
        return response if isinstance(response, web.Response) else None

    async def respond(
        self, context: RequestContext, entry: LoggedAutoscaler, load: Callable[[], RecordedLoad]
    ) -> web.Response:
        """Return the current spec, or the replay with the spec of the request."""
        text = context.query[WHAT_IF]
        if not text.strip():
            return context.respond({"spec": spec_yaml(entry.autoscaler.spec)})
        if len(text.encode()) > MAX_SPEC_BYTES:
            raise errors.SpecInvalid((("", f"the spec is too large: at most {MAX_SPEC_BYTES:,} bytes"),))
        startup = _startup(context)

        def work(check: Callable[[], None]) -> Json:
            content = _valid_spec(text, entry.autoscaler.metadata, check)
            return replay(content, ReplayInput(entry.autoscaler, load(), self.options, startup), check)

        namespace = entry.autoscaler.metadata.namespace
        try:
            view = await self._in_thread(namespace, work)
        except ConfigInvalid as error:
            raise errors.SpecInvalid(tuple(map(_path_and_text, error.problems))) from error
        return context.respond(view)

    async def _in_thread(self, holder: str, work: Callable[[Callable[[], None]], Json]) -> Json:
        """Run work in a thread until it ends, or until the request ends; the slot is held until the thread is free."""
        slices = _Slices(self._seconds)
        with self._limit.hold(holder):
            running = asyncio.ensure_future(asyncio.to_thread(work, slices.check))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                slices.stop.set()
                await asyncio.wait([running])
                raise


class _Slices:
    """Divides the work of a thread into slices with pauses; ends it at the time limit or when the request ends."""

    def __init__(self, seconds: float) -> None:
        self.stop = threading.Event()
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._slice_end = 0.0

    def check(self) -> None:
        """Pause if the slice is over; raise if the work must end."""
        now = time.monotonic()
        if now < self._slice_end:
            return
        if self.stop.is_set():
            raise _Stopped
        if now >= self._deadline:
            message = f"the replay did not complete within {self._seconds:g}s: choose a shorter period"
            raise errors.DeadlineExceeded(message)
        time.sleep(_PAUSE)
        self._slice_end = time.monotonic() + _SLICE


def _valid_spec(text: str, metadata: Metadata, check: Callable[[], None]) -> Any:  # noqa: ANN401 - YAML
    """Return the content of a spec; raise ``ConfigInvalid`` with all problems that ``steadyscale check`` reports."""
    documents = load_yaml(_limited_yaml(text, check))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ConfigInvalid(
            [Problem("", "must be the spec of one PodAutoscaler: a mapping with maxReplicas, metrics, …")]
        )
    names = {"name": metadata.name, "namespace": metadata.namespace}
    document = {"apiVersion": GROUP_VERSION, "kind": "PodAutoscaler", "metadata": names, "spec": documents[0]}
    if problems := autoscaler_problems(document):
        raise ConfigInvalid(problems)
    return documents[0]


def _limited_yaml(text: str, check: Callable[[], None]) -> str:
    """Return the text; raise ``ConfigInvalid`` if it has aliases or is nested too deep.

    With aliases, a short text can be a huge document. PyYAML needs quadratic time and recursion for nested ones.
    """
    depth = 0
    try:
        for token in yaml.scan(text):
            check()
            depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
            if isinstance(token, yaml.AliasToken) or depth > MAX_DEPTH:
                message = "aliases are not supported" if depth <= MAX_DEPTH else "nested too deep"
                mark = token.start_mark
                raise ConfigInvalid([Problem(f"line {mark.line + 1}, column {mark.column + 1}", message)])
    except yaml.YAMLError:
        pass  # reported when it is loaded
    return text


def _startup(context: RequestContext) -> timedelta:
    text = context.query.get("startup") or "0s"
    try:
        startup = parse_duration(text)
    except ValueError as error:
        raise errors.InvalidRequest(f"startup: {error}") from None
    if startup > _MAX_STARTUP:
        raise errors.InvalidRequest("startup: must be at most 1h")
    return startup


def _path_and_text(problem: Problem) -> tuple[str, str]:
    return problem.path, str(Problem("", problem.message, problem.value, problem.hint))
