"""prometheus-adapter's configuration file, read as it is and rendered as it renders: moving over is pointing at it."""
