"""The commands of shell.py in an application with a thread: its children are not forked."""

from __future__ import annotations

import importlib
import threading

app = importlib.import_module("shell").app
threading.Thread(target=threading.Event().wait, daemon=True).start()
