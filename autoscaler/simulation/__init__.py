"""Simulation of autoscalers on recorded load: a fold of ``decide`` over time, a model of the workload, and measures."""
