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
    observer = Observer(Mock(pods=Mock(list=AsyncMock())), FeatureGates())
    observation = observer._observe_metrics("shop/web", Mock(), plan, Mock(selector="app=web"), deadline=1e9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        task = asyncio.ensure_future(observation)
        asyncio.get_running_loop().call_soon(task.cancel)  # before the tasks that the observation creates
        with pytest.raises(asyncio.CancelledError):
            await task
        del task, observation
        await asyncio.sleep(1)
        gc.collect()
    assert [str(each.message) for each in caught] == []
