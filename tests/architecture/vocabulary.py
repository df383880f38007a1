"""The Words table of CONTRIBUTING.md as data: what no name may be called, and what to say instead.

Only words that are wrong wherever they stand in a name are listed. Left out because they also have
an honest meaning here: handler (logging, signals, kopf), message (of an error), execution (one
attempt in a worker), poll (waiting for a condition), pending (`once`), failed, lock as a bare name
(mutual exclusion inside a process), ping (Redis), quiet (of a command line), thread (of Python),
overlap (of a change of the clock), sweep (keys of deleted queues), forward (signals), depth.
"""

from __future__ import annotations

# one word of a name -> the word to use
WORDS = {
    "actor": "task",
    "topic": "queue",
    "lane": "queue",
    "push": "enqueue",
    "fetch": "claim or exchange",
    "ack": "settle",
    "nack": "release",
    "discard": "bury",
    "tries": "attempts",
    "retries": "attempts, max_attempts",
    "lock": "lease or term",
    "visibility": "lease",
    "epoch": "term; for a time: unix_ms, unix_seconds",
    "delayed": "scheduled",
    "completed": "succeeded",
    "archive": "dead letter",
    "archived": "dead",
    "trigger": "fire",
    "triggered": "fired",
    "rescue": "reap",
    "rescuer": "reaper",
    "forwarder": "promoter",
    "lag": "age",
    "latency": "service time",
    "tz": "time zone: time_zone, zone",
    "manager": "what it does: -er, or the noun of what it keeps",
    "util": "the idea the file is about",
    "utils": "the idea the file is about",
    "helper": "the idea the function serves",
    "helpers": "the idea the file is about",
    "base": "what its members have in common",
}

# words of a name that are wrong only together
PHRASES = {
    ("crash", "count"): "losses",
    ("failed", "set"): "dead letters",
    ("queue", "depth"): "backlog",
    ("backlog", "depth"): "backlog",
    ("queue", "length", "seconds"): "age",
    ("retry", "count"): "attempt",
    ("job", "thread"): "slot",
    ("worker", "thread"): "slot",
    ("hand", "back"): "release",
}

# whole names that may be used all the same -> why
ALLOWED = {
    "lock": "mutual exclusion inside one process (asyncio, threading, fcntl)",
    "_lock": "the same",
    "completed": "a subprocess.CompletedProcess",
    "base_url": "the word of HTTP clients",
    "tz": "the parameter of datetime and of tzinfo classes",
    "push": "a method of the standard library's containers",
    "discard": "the method of sets",
    "manager": "a field manager of Kubernetes' server-side apply",
    "FIELD_MANAGER": "the same",
    "SCALE_MANAGER": "the same",
    "EPOCH": "1970-01-01 as a datetime",
}
