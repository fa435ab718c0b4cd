"""Resource requests of pods: containers, sidecars, pod-level requests and overhead."""

import pytest

from autoscaler.algorithm.pods import requests_of
from autoscaler.types.metric_result import CalculationFailure
from autoscaler.values.quantity import Quantity
from tests.builders import make_container, make_pod

CPU = {"cpu": Quantity.parse("1")}
MEMORY = {"memory": Quantity.parse("1Gi")}
APP = make_container("app", cpu="300m")
SIDE = make_container("side", cpu="50m", restart="Always")
INIT = make_container("init", cpu="2")
BARE = make_container("bare")


def request(resource="cpu", container="", *, pod_level=True, **parts):
    requests = requests_of((make_pod(**parts),), resource, container, pod_level=pod_level)
    return requests.message if isinstance(requests, CalculationFailure) else requests["web-0"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"containers": (APP, APP)}, 600, id="containers are summed"),
        pytest.param(
            {"containers": (APP,), "init_containers": (SIDE, INIT)},
            350,
            id="sidecars count, ordinary init containers do not",
        ),
        pytest.param({"containers": (APP,), "overhead": CPU}, 300, id="overhead does not count"),
        pytest.param(
            {"containers": (APP, BARE)},
            "missing request for cpu in container bare of Pod web-0",
            id="container without a request fails the calculation",
        ),
        pytest.param({"containers": ()}, 0, id="pod without containers"),
        pytest.param({"container": "app", "containers": (BARE, APP)}, 300, id="named container"),
        pytest.param({"container": "side", "containers": (APP,), "init_containers": (SIDE,)}, 50, id="named sidecar"),
        pytest.param(
            {"container": "init", "containers": (APP,), "init_containers": (INIT,)},
            "container init not found in Pod web-0",
            id="named init container is not found",
        ),
        pytest.param(
            {"container": "bare", "containers": (BARE,)},
            "missing request for cpu in container bare of Pod web-0",
            id="named container without a request",
        ),
        pytest.param(
            {"container": "app", "containers": (APP,), "requests": CPU},
            300,
            id="named container ignores the pod-level request",
        ),
        pytest.param(
            {"containers": (make_container(cpu=str(2**51)), make_container(cpu=str(2**51)))},
            2**52 * 1000,
            id="large numbers",
        ),
        pytest.param(
            {"containers": (make_container(cpu="9223372036854775"), make_container(cpu="9223372036854775"))},
            2 * 9223372036854775000 - 2**64,
            id="int64 overflow wraps",
        ),
    ],
)
def test_container_requests(given, expected):
    assert request(**given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"requests": CPU, "containers": (APP,)}, 1000, id="pod-level request"),
        pytest.param(
            {"requests": CPU, "containers": (APP,), "overhead": {"cpu": Quantity.parse("50m")}},
            1050,
            id="pod-level request plus overhead",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "overhead": {"cpu": Quantity.parse("50m")}},
            350,
            id="pod-level request of another resource",
        ),
        pytest.param({"requests": MEMORY, "containers": (APP, BARE)}, 300, id="container without a request is allowed"),
        pytest.param(
            {"requests": MEMORY, "containers": (BARE,)},
            "missing pod-level request for cpu in Pod web-0",
            id="no request at all",
        ),
        pytest.param(
            {"requests": {"hugepages-2Mi": Quantity.parse("2Mi")}, "containers": (APP,), "overhead": CPU},
            1300,
            id="pod-level request of huge pages",
        ),
        pytest.param(
            {"requests": {"gpu": Quantity.parse("1")}, "containers": (APP,)},
            300,
            id="unsupported pod-level resource is ignored",
        ),
        pytest.param(
            {
                "resource": "gpu",
                "requests": CPU | {"gpu": Quantity.parse("1")},
                "containers": (make_container(gpu="2"),),
            },
            2000,
            id="unsupported pod-level resource does not override containers",
        ),
        pytest.param(
            {"requests": {}, "containers": (APP,), "overhead": CPU}, 300, id="empty pod-level requests are ignored"
        ),
        pytest.param(
            {"requests": CPU, "containers": (APP,), "pod_level": False},
            300,
            id="pod-level requests are ignored with the gate off",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (INIT,)},
            2000,
            id="init container larger than the running containers",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (SIDE, INIT)},
            2050,
            id="init container plus earlier sidecars",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (INIT, SIDE)},
            2000,
            id="init container without later sidecars",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (SIDE,)},
            350,
            id="sidecar is added to the containers",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (BARE,), "init_containers": (INIT,)},
            2000,
            id="only an init container has a request",
        ),
    ],
)
def test_pod_level_requests(given, expected):
    assert request(**given) == expected


def test_first_pod_without_a_request_is_named():
    good, bad = make_pod("good"), make_pod("bad", containers=(BARE,), terminating=True)

    assert requests_of((good,), "cpu", "", pod_level=True) == {"good": 1000}
    assert requests_of((good, bad, bad), "cpu", "", pod_level=True) == CalculationFailure(
        "missing request for cpu in container bare of Pod bad"
    )
