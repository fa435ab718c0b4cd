"""The only code that talks to metric systems; one file each. None of them has heard of an autoscaler."""
