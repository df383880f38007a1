"""Frames survive every way of being cut, and nonsense is an error."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.worker import frames

JOB = frames.JobFrame(
    number=7, ahead=True, queue=2, attempt=3, max_attempts=4, timeout=1.5, body=b'{"id":"x"}'
)


def test_a_job_survives_the_wire() -> None:
    (payload,) = frames.FrameBuffer().feed(JOB.encode())

    assert frames.JobFrame.decode(payload) == JOB


@pytest.mark.parametrize("kind", list(OutcomeKind))
def test_every_outcome_survives_the_wire(kind: OutcomeKind) -> None:
    outcome = Outcome(kind, b"\x00detail", timedelta(seconds=2.5))

    (payload,) = frames.FrameBuffer().feed(frames.ended_frame(9, outcome, 0.25))

    assert frames.decode_report(payload) == frames.Ended(9, outcome, 0.25)


def test_reports_cut_into_single_bytes_come_out_whole_and_in_order() -> None:
    error = JobError("E", "m")
    stream = (
        frames.ready_frame()
        + frames.started_frame(1, 12.5)
        + frames.ended_frame(1, Outcome.bury(error), 0.5)
        + frames.started_frame(2, 13.0)
    )
    buffer = frames.FrameBuffer()

    found = [
        frames.decode_report(payload) for byte in stream for payload in buffer.feed(bytes([byte]))
    ]

    assert found == [
        frames.Ready(),
        frames.Started(1, 12.5),
        frames.Ended(1, Outcome.bury(error), 0.5),
        frames.Started(2, 13.0),
    ]


@pytest.mark.parametrize("payload", [b"", b"?", b"S", b"S\x00", b"E\x00\x00", b"E" + b"\xff" * 21])
def test_nonsense_is_a_frame_error(payload: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.decode_report(payload)


def test_a_short_job_is_a_frame_error() -> None:
    with pytest.raises(frames.FrameError, match="too short"):
        frames.JobFrame.decode(b"\x00\x01")


def test_an_absurd_length_is_refused_before_it_is_awaited() -> None:
    with pytest.raises(frames.FrameError, match="limit"):
        frames.FrameBuffer().feed(b"\xff\xff\xff\xff")
