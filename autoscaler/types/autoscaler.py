"""One autoscaler as the API server holds it: who it is, what was asked, what it last said."""

from collections.abc import Mapping

from autoscaler.types.record import Record
from autoscaler.types.spec import Spec
from autoscaler.types.status import Status


class Metadata(Record):
    """What Kubernetes keeps of every object, as far as validation looks at it."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    generation: int = 0
    resource_version: str = ""
    uid: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class Autoscaler(Record):
    """A PodAutoscaler, or a HorizontalPodAutoscaler."""

    metadata: Metadata = Metadata()
    spec: Spec = Spec()
    status: Status = Status()
