"""A module that cannot be imported: its pods go round in circles."""

from __future__ import annotations

import errands_that_nobody_wrote  # type: ignore[import-not-found]  # noqa: F401
