"""What pods request of a resource."""

import pytest

from autoscaler.algorithm.requests import requests_of
from autoscaler.types.metric_result import Incalculable
from autoscaler.values.quantity import Quantity
from tests.builders import make_container, make_pod

CPU = {"cpu": Quantity.parse("1")}
MEMORY = {"memory": Quantity.parse("1Gi")}
APP = make_container("app", cpu="300m")
SIDE = make_container("side", cpu="50m", restart="Always")
INIT = make_container("init", cpu="2")
BARE = make_container("bare")


def request(resource="cpu", container="", *, pod_level=True, **parts):
    found = requests_of((make_pod(**parts),), resource, container, pod_level=pod_level)
    return found.message if isinstance(found, Incalculable) else found["web-0"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"containers": (APP, APP)}, 600, id="containers are summed"),
        pytest.param({"containers": (APP,), "init_containers": (SIDE, INIT)}, 350, id="sidecars count, others do not"),
        pytest.param({"containers": (APP,), "overhead": CPU}, 300, id="overhead does not count"),
        pytest.param(
            {"containers": (APP, BARE)},
            "missing request for cpu in container bare of Pod web-0",
            id="a container without request fails it",
        ),
        pytest.param({"containers": ()}, 0, id="a pod without containers requests nothing"),
        pytest.param({"container": "app", "containers": (BARE, APP)}, 300, id="of the named container only"),
        pytest.param(
            {"container": "side", "containers": (APP,), "init_containers": (SIDE,)}, 50, id="of a named sidecar"
        ),
        pytest.param(
            {"container": "init", "containers": (APP,), "init_containers": (INIT,)},
            "container init not found in Pod web-0",
            id="an ordinary init container is not to be found",
        ),
        pytest.param(
            {"container": "bare", "containers": (BARE,)},
            "missing request for cpu in container bare of Pod web-0",
            id="the named container must have a request",
        ),
        pytest.param(
            {"container": "app", "containers": (APP,), "requests": CPU}, 300, id="of a container, whatever the pod says"
        ),
        pytest.param(
            {"containers": (make_container(cpu=str(2**51)), make_container(cpu=str(2**51)))},
            2**52 * 1000,
            id="large numbers",
        ),
        pytest.param(
            {"containers": (make_container(cpu="9223372036854775"), make_container(cpu="9223372036854775"))},
            2 * 9223372036854775000 - 2**64,
            id="too large numbers wrap",
        ),
    ],
)
def test_requests_of_containers(given, expected):
    assert request(**given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"requests": CPU, "containers": (APP,)}, 1000, id="the pod's own request counts"),
        pytest.param(
            {"requests": CPU, "containers": (APP,), "overhead": {"cpu": Quantity.parse("50m")}},
            1050,
            id="with overhead",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "overhead": {"cpu": Quantity.parse("50m")}},
            350,
            id="another resource switches it over too",
        ),
        pytest.param({"requests": MEMORY, "containers": (APP, BARE)}, 300, id="then a container need not request any"),
        pytest.param(
            {"requests": MEMORY, "containers": (BARE,)},
            "missing pod-level request for cpu in Pod web-0",
            id="but someone must",
        ),
        pytest.param(
            {"requests": {"hugepages-2Mi": Quantity.parse("2Mi")}, "containers": (APP,), "overhead": CPU},
            1300,
            id="huge pages switch it over",
        ),
        pytest.param(
            {"requests": {"gpu": Quantity.parse("1")}, "containers": (APP,)}, 300, id="an unsupported resource does not"
        ),
        pytest.param(
            {
                "resource": "gpu",
                "requests": {**CPU, "gpu": Quantity.parse("1")},
                "containers": (make_container(gpu="2"),),
            },
            2000,
            id="nor does it override the containers",
        ),
        pytest.param({"requests": {}, "containers": (APP,), "overhead": CPU}, 300, id="nor does an empty one"),
        pytest.param({"requests": CPU, "containers": (APP,), "pod_level": False}, 300, id="nor any without the gate"),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (INIT,)},
            2000,
            id="an init container counts if it needs more than all that runs",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (SIDE, INIT)},
            2050,
            id="with the sidecars that run before it",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (INIT, SIDE)},
            2000,
            id="without those that run after it",
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (APP,), "init_containers": (SIDE,)}, 350, id="a sidecar runs beside"
        ),
        pytest.param(
            {"requests": MEMORY, "containers": (BARE,), "init_containers": (INIT,)}, 2000, id="an init container alone"
        ),
    ],
)
def test_requests_of_whole_pods(given, expected):
    assert request(**given) == expected


def test_every_pod_is_asked_and_the_first_without_request_is_named():
    good, bad = make_pod("good"), make_pod("bad", containers=(BARE,), terminating=True)

    assert requests_of((good,), "cpu", "", pod_level=True) == {"good": 1000}
    assert requests_of((good, bad, bad), "cpu", "", pod_level=True) == Incalculable(
        "missing request for cpu in container bare of Pod bad"
    )
