"""Trying an application out in a process of its own, before anything rests on it."""
