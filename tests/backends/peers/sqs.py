"""SQS of moto, used by a user with read permissions."""

from collections.abc import Mapping
from typing import ClassVar

from tests.backends.contract import Json
from tests.backends.moto_server import MotoPeer


class Peer(MotoPeer):
    kind = "sqs"
    may: ClassVar = ("sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListQueues")

    def set_values(self, numbers: Mapping[str, int]) -> None:
        sqs = self.server.client("sqs")
        for url in sqs.list_queues().get("QueueUrls", []):
            sqs.delete_queue(QueueUrl=url)
        for name, number in numbers.items():
            url = sqs.create_queue(QueueName=f"shop-{name}")["QueueUrl"]
            for _ in range(number):
                sqs.send_message(QueueUrl=url, MessageBody="work")

    def parameters_for(self, name: str) -> Json:
        return {"queue": f"shop-{name}"}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"queue": f"shop-{name}"}

    def parameters_for_all(self) -> Json:
        return {"prefix": "shop-"}

    def parameters_without_result(self) -> Json:
        return {"prefix": "absent-"}
