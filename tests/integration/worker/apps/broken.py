"""An application that does not import."""

from __future__ import annotations

import a_module_that_does_not_exist  # type: ignore[import-not-found]  # noqa: F401
