"""The commands of ``steadyscale``, one module each."""
