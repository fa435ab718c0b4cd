"""The scaling algorithm: pure functions from an observation to a decision; not async, no clock, no I/O."""
