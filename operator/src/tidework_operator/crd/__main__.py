"""``python -m tidework_operator.crd``: write the CRDs, or check that those written are current."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import yaml

from tidework_operator.crd.definitions import DEFINITIONS

_HEADER = """\
# Generated from the pydantic models in worker/src/tidework/manifests by
# `python -m tidework_operator.crd`; edit those.
"""


def render() -> dict[str, str]:
    """File name -> text, one CustomResourceDefinition each."""
    return {
        f"{definition.kind.value.plural}.yaml": _HEADER
        + yaml.safe_dump(definition.document(), sort_keys=False, width=100, allow_unicode=True)
        for definition in DEFINITIONS
    }


def differences(folder: Path) -> list[str]:
    """What is not as it would be generated, a line each."""
    wanted = render()
    found = {path.name: path.read_text() for path in sorted(folder.glob("*.yaml"))}
    said = [f"{folder / name} is missing" for name in wanted.keys() - found.keys()]
    said += [f"{folder / name} is none of ours" for name in found.keys() - wanted.keys()]
    both = wanted.keys() & found.keys()
    return sorted(
        said + [f"{folder / name} is out of date" for name in both if wanted[name] != found[name]]
    )


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if something would change.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("crds"),
    show_default=True,
    help="Where the CRDs are.",
)
def main(*, check: bool, folder: Path) -> None:
    """Write the CustomResourceDefinitions of TaskQueue and CronTask."""
    if not check:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in render().items():
            (folder / name).write_text(text)
        return
    said = differences(folder)
    if said:
        for line in said:
            click.echo(line, err=True)
        click.echo("run `python -m tidework_operator.crd` and commit what it writes", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main(prog_name="python -m tidework_operator.crd")
