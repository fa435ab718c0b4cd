"""The shard protocol: which process controls which autoscalers. Pure; the I/O is in `autoscaler.controller.shards`."""
