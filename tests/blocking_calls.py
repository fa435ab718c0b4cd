"""Detection of calls in ``adapter`` that block the event loop."""

from collections.abc import Iterator
from contextlib import contextmanager

from blockbuster import BlockBuster, blockbuster_ctx


@contextmanager
def detected_blocking_calls() -> Iterator[BlockBuster]:
    """Raise an error in every blocking call that the adapter makes from an event loop."""
    with blockbuster_ctx("adapter") as detector:
        detector.functions["os.write"].can_block_in("adapter/log_stream.py", "flush")  # polls before it writes
        yield detector
