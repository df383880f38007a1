"""One module per resource: gather by broker calls, build a value, answer."""
