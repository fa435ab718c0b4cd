"""What every folder of tests may ask for."""

from tests.control_plane.fixtures import plane

__all__ = ["plane"]
