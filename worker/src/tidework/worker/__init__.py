"""The worker: a supervisor that owns Redis, leases and timers, and child processes that run jobs.

Nothing is imported here: the template and the children load as little as they can.
"""
