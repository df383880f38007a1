"""The HTTP API: reads and acts over the same broker as SDK and command line."""
