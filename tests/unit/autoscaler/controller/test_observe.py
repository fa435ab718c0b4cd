"""Cancelling an observation."""

import asyncio
import gc
import warnings
from unittest.mock import AsyncMock, Mock

import pytest

from autoscaler.controller.observe import Observer
from autoscaler.controller.reconcile_plan import ExternalMetricRead
from autoscaler.controller.selectors import parse_cached
from autoscaler.settings import FeatureGates
from autoscaler.types.spec import MetricIdentifier

pytestmark = pytest.mark.looptime


async def test_observation_cancelled_before_its_reads_start_leaves_none_of_them_behind():
    read = ExternalMetricRead(MetricIdentifier("queue"), parse_cached("app=web"))
    plan = Mock(reads=(read, read), needs_pods=True)
    pods, external = Mock(list=AsyncMock()), Mock(read=AsyncMock())
    pods.list_now.return_value = external.read_now.return_value = None
    observer = Observer(Mock(pods=pods, external=external), FeatureGates())
    observation = observer._observe_metrics("shop/web", Mock(), plan, Mock(), read.selector, deadline=1e9)
    gc.collect()  # what earlier tests left behind
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        observation.send(None)  # until it continues in a task
        task = asyncio.ensure_future(observation)
        asyncio.get_running_loop().call_soon(task.cancel)  # before the tasks that the observation creates
        with pytest.raises(asyncio.CancelledError):
            await task
        del task, observation
        await asyncio.sleep(1)
        gc.collect()
    assert [str(each.message) for each in caught] == []
