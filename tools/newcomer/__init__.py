"""A newcomer's first minutes, played and written down."""
