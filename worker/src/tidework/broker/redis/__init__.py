"""The broker on Redis: a method per script, and what their replies mean."""
