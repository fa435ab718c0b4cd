"""Redis: how long lists and streams are, what consumer groups have yet to do, how many a set holds."""
