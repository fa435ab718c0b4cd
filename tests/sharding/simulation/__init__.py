"""Simulation of the shard protocol: many processes, churn, partitions, frozen processes, clocks of different speed."""
