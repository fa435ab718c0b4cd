"""The first steps of a new user in a fresh clone, with times."""
