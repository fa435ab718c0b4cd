"""The arithmetic: values in, values out; never async, never a look at the clock."""
