"""Replicas follow the load: gather -> tidework.scaling.decide -> plan -> apply, once a second."""
