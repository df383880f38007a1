"""What `jobs` holds of a job: its task, a zero byte, its envelope.

An envelope that we wrote ourselves goes in without its first two members, version and id, and so
begins with a comma: the id is the name of the field, and this is a tenth of what a waiting job
costs. Both are put back wherever a job is read.
"""

from __future__ import annotations


def stored_body(task: str, job_id: str, envelope: bytes) -> bytes:
    """What is stored of an envelope."""
    head = b'{"v":1,"id":"%b"' % job_id.encode()
    if envelope.startswith(head + b","):
        envelope = envelope[len(head) :]
    return b"%b\0%b" % (task.encode(), envelope)


def split_body(job_id: bytes, stored: bytes) -> tuple[str, bytes]:
    """Task and envelope; of a document that never validated no task, and its bytes."""
    task, _, envelope = stored.partition(b"\0")
    if task and envelope.startswith(b","):
        envelope = b'{"v":1,"id":"%b"%b' % (job_id, envelope)
    return task.decode(), envelope
