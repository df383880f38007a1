"""Measures Tidework and its peers with the same jobs on the same server: README.md says how."""
