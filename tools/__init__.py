"""Programs for who works on this project; nothing here runs in a cluster."""
