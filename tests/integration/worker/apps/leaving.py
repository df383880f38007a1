"""An application whose import ends the process."""

from __future__ import annotations

import os

os._exit(3)
