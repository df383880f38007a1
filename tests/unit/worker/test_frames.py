"""Frames survive every way of being cut, and nonsense is an error."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidework.model.outcome import JobError, Outcome, OutcomeKind
from tidework.worker import frames

JOB = frames.JobFrame(
    number=7,
    ahead=True,
    queue=2,
    attempt=3,
    max_attempts=4,
    timeout=1.5,
    body=b'{"id":"x"}',
    token="host.0a1b2c3d:1",
    releases=5,
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


@pytest.mark.parametrize(
    ("frame", "order"),
    [
        (JOB.encode(), JOB),
        (frames.order_frame(frames.Stop(12)), frames.Stop(12)),
        (frames.order_frame(frames.Cancel(12)), frames.Cancel(12)),
        (frames.order_frame(frames.Release(12)), frames.Release(12)),
        (frames.ping_frame(), frames.Ping()),
    ],
)
def test_orders_survive_the_wire(frame: bytes, order: frames.Order) -> None:
    (payload,) = frames.FrameBuffer().feed(frame)

    assert frames.decode_order(payload) == order


@pytest.mark.parametrize("payload", [bytes(4), bytes(9), bytes(4) + b"X" + bytes(4), b"", b"J"])
def test_an_order_of_nonsense_is_a_frame_error(payload: bytes) -> None:
    with pytest.raises(frames.FrameError):
        frames.decode_order(payload)


def test_signs_of_life_survive_the_wire() -> None:
    payloads = frames.FrameBuffer().feed(frames.alive_frame() + frames.worn_frame("gone: \udce9"))

    assert [frames.decode_report(found) for found in payloads] == [
        frames.Alive(),
        frames.Worn("gone: \\udce9"),
    ]


def test_a_large_frame_in_pieces_is_put_together_once() -> None:
    big = frames.JobFrame(1, False, 0, 1, 1, 1.0, b"x" * 1_000_000)
    data = JOB.encode() + big.encode() + JOB.encode()
    buffer = frames.FrameBuffer()

    found = [
        frames.JobFrame.decode(payload)
        for at in range(0, len(data), 65_536)
        for payload in buffer.feed(data[at : at + 65_536])
    ]

    assert found == [JOB, big, JOB]
