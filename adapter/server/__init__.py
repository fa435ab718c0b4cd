"""HTTP in, HTTP out; no thinking. Walk: connection, server, routes, one handler, encode or status."""
