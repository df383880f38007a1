"""The tasks of loops.py in an application with a thread: its children are not forked."""

from __future__ import annotations

import importlib
import threading

app = importlib.import_module("loops").app
threading.Thread(target=threading.Event().wait, daemon=True).start()
