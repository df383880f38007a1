"""Finds the application that ``--app`` names, and says what is wrong when it cannot be used."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from tidework.app import Tidework
from tidework.errors import AppImportError
from tidework.meant import did_you_mean, nearest
from tidework.model.command import COMMANDS_SUFFIXES
from tidework.model.task import needs_slots

_OWN = f"{Path(__file__).parent}{os.sep}"


def load_app(target: str) -> Tidework:
    """Import ``package.module`` or ``package.module:attribute`` and return its Tidework app.

    The current folder is importable, as with ``python -m``. What ends as a commands file does is
    one. Raises AppImportError, or ManifestErrors of a commands file.
    """
    if target.endswith(COMMANDS_SUFFIXES):
        return _load_commands(Path(target))
    module_name, _, attribute = target.partition(":")
    if not module_name:
        raise AppImportError("no app is named; use --app package.module or package.module:app")
    if "/" in module_name or module_name.endswith(".py"):
        raise AppImportError(_file_fault(target))
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        meant = _meant(module_name) if _is_missing(module_name, error) else ""
        fault = _import_fault(module_name, error, meant)
        raise AppImportError(fault, is_typo=bool(meant)) from error
    return _pick(module, attribute)


def refuse_for_loop(app: Tidework, queues: Collection[str]) -> None:
    """Raise AppImportError if it declares a task for one of these queues, whose workers have an
    event loop, that would block it."""
    for queue in queues:
        tasks = (task for task in app.tasks.values() if task.spec.queue == queue)
        if found := [task.spec.name for task in tasks if not task.is_async]:
            raise AppImportError(f"queue {queue!r}: {needs_slots(found)}")


def _load_commands(path: Path) -> Tidework:
    # Here, since most workers have no such file, and what reads it takes time to import.
    from tidework.manifests.commands_file import read_commands

    found = read_commands(path)
    app = Tidework(path.stem)
    for name, entry in found.commands.items():
        app.command(
            name,
            entry.command,
            cwd=path.absolute().parent / entry.working_dir,
            env=entry.env,
            max_output=entry.max_output_bytes,
            queue=entry.queue,
            max_attempts=entry.max_attempts,
            delays=entry.delays_seconds,
            timeout=entry.timeout_seconds,
            soft_timeout=entry.soft_timeout_seconds,
            priority=entry.priority,
        )
    return app


def _file_fault(target: str) -> str:
    path, colon, attribute = target.partition(":")
    relative = path.removesuffix(".py").removeprefix("./")
    fault = f"app {target!r} names a file; name a module"
    if relative.startswith(("/", "../")):
        return f"{fault}, such as package.module, and start the program in the folder that holds it"
    return f"{fault}: {relative.strip('/').replace('/', '.')}{colon}{attribute}"


def _is_missing(module_name: str, error: BaseException) -> bool:
    """Is it the module itself that is not there, or a package around it?"""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return False
    return module_name == error.name or module_name.startswith(f"{error.name}.")


def _meant(module_name: str) -> str:
    """``; did you mean ...?`` where something beside the missing part has a name like it."""
    found: list[str] = []
    place = Path.cwd()
    for part in module_name.split("."):
        names = [path.stem for path in place.glob("[!_.]*.py")]
        names += [path.parent.name for path in place.glob("[!.]*/__init__.py")]
        if part not in names:
            meant = nearest(part, names)
            rest = module_name.split(".")[len(found) + 1 :]
            return f"; did you mean {'.'.join([*found, meant, *rest])!r}?" if meant else ""
        found.append(part)
        place /= part
    return ""


def _import_fault(module_name: str, error: BaseException, meant: str) -> str:
    if _is_missing(module_name, error):
        remedy = "start the program in the folder that holds it, or put that folder on PYTHONPATH"
        return f"app {module_name!r} was not found{meant or ';'} {remedy}"
    frames = traceback.extract_tb(error.__traceback__)
    # The first is load_app. What refuses a wrong declaration lies in this package, or is called
    # by it; what is to be mended does not.
    own = (at for at, frame in enumerate(frames) if at and frame.filename.startswith(_OWN))
    outer = [f for f in frames[1 : next(own, None)] if not f.filename.startswith("<")] or frames
    place = f"{outer[-1].filename}:{outer[-1].lineno}" if outer else "unknown place"
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    return (
        f"app {module_name!r} does not import: {type(error).__name__}: {error} (at {place}); "
        f"try: python -c 'import {module_name}'"
    )


def _pick(module: ModuleType, attribute: str) -> Tidework:
    if attribute:
        found = getattr(module, attribute, None)
        if isinstance(found, Tidework):
            return found
        others = [name for name, value in vars(module).items() if isinstance(value, Tidework)]
        what = "is missing" if found is None else f"is a {type(found).__name__}"
        raise AppImportError(
            f"{module.__name__}:{attribute} {what}{did_you_mean(attribute, others) or ';'} it has "
            'to be a Tidework app, such as app = Tidework("shop")'
        )
    apps = {id(value): value for value in vars(module).values() if isinstance(value, Tidework)}
    if len(apps) == 1:
        return next(iter(apps.values()))
    if not apps:
        raise AppImportError(
            f'module {module.__name__!r} holds no Tidework app; add app = Tidework("shop")'
        )
    names = sorted(k for k, v in vars(module).items() if isinstance(v, Tidework))
    raise AppImportError(
        f"module {module.__name__!r} holds several Tidework apps ({', '.join(names)}); "
        f"name one: --app {module.__name__}:{names[0]}"
    )
