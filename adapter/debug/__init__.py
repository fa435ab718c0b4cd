"""Why a number is what it is, or is not there. Read only."""
