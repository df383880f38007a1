"""Quantities are compared as Kubernetes compares them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.documents import queue
from tidework.manifests import ManifestErrors
from tidework.manifests.quantities import amount_of


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        ("2", Fraction(2)),
        ("500m", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("1.", Fraction(1)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1Ei", Fraction(2**60)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("25e-1", Fraction(5, 2)),
        ("5n", Fraction(5, 10**9)),
        ("1k", Fraction(1000)),
    ],
)
def test_a_quantity_stands_for_a_number(quantity: str, amount: Fraction) -> None:
    assert amount_of(quantity) == amount


def test_an_absurd_exponent_costs_nothing() -> None:
    assert amount_of("1e999999999") > amount_of("1E")


@pytest.mark.parametrize(
    ("requests", "limits"),
    [
        ({"memory": "512Mi"}, {"memory": "128Mi"}),
        ({"cpu": 2}, {"cpu": "1999m"}),
        ({"memory": "1Gi"}, {"memory": "1G"}),
    ],
)
def test_a_request_above_its_limit_is_refused(
    requests: dict[str, str], limits: dict[str, str]
) -> None:
    with pytest.raises(ManifestErrors, match=r"spec\.resources\.requests: .* is above the limit"):
        queue(resources={"requests": requests, "limits": limits})


def test_requests_at_their_limits_and_devices_are_taken() -> None:
    amounts = {"cpu": "1", "memory": "1024Mi", "example.com/gpu": 1, "hugepages-2Mi": "4Mi"}
    limits = {"cpu": "1000m", "memory": "1Gi", "ephemeral-storage": "2e9"}

    queue(resources={"requests": amounts, "limits": limits})


def test_a_misspelt_resource_is_refused() -> None:
    with pytest.raises(ManifestErrors, match="'memroy': there is no such resource; use cpu,"):
        queue(resources={"requests": {"memroy": "1Gi"}})
