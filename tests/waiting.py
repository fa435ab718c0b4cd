"""How long tests wait for an event. A wait ends when the event occurs, so a late limit costs nothing."""

from typing import Final

GIVE_UP: Final = 180.0
"""Seconds; also enough on a machine with ten times the load. Virtual time (looptime) has limits of its own."""
EXPECT: Final = GIVE_UP * 1000
"""The same for Playwright, in milliseconds."""
