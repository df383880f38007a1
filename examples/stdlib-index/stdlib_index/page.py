"""The report: one HTML file that needs no other, in light and dark.

Whatever comes from a file (names, reasons) is escaped: a source file may be called anything.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path

from stdlib_index.chart import bar_chart
from stdlib_index.record import Findings
from stdlib_index.summary import LEAST_DOCUMENTABLE, Share, Summary, summarize

_STYLE = Path(__file__).with_name("page.css")


def write_page(folder: Path, run: str, findings: Findings, now: datetime) -> Path:
    """Write ``index.html`` into the folder, which is made if need be; whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    # A second attempt may be writing at the same time: each has a file of its own.
    draft = folder / f".index.{os.getpid()}.html"
    draft.write_text(render_page(run, summarize(findings), now), encoding="utf-8")
    draft.replace(path)
    return path


def render_page(run: str, found: Summary, now: datetime) -> str:
    """The page as text."""
    title = f"Standard library of Python {platform.python_version()}"
    tests = (
        f"Its own tests ({found.tests.lines:,} lines) are counted in the totals only: "
        "they would flatten every other bar."
    )
    judged = f"Packages with at least {LEAST_DOCUMENTABLE} public definitions, tests left out."
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{_STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p>{found.files:,} files, one job each. Run {escape(run)}, written {now:%Y-%m-%d %H:%M:%S %Z}.</p>
{_missing(found.missing)}{_totals(found)}
<section>
<h2>Largest packages, lines</h2>
<p>{escape(tests) if found.tests.files else ""}</p>
<figure>
{bar_chart("Lines of the largest packages", [(s.name, s.lines) for s in found.largest])}
</figure>
</section>
<section>
<h2>Docstring coverage</h2>
<p>{judged}</p>
<div class="pair">
{_coverage("Best", found.best)}
{_coverage("Worst", found.worst)}
</div>
</section>
<section>
<h2>Dead files</h2>
<p>Their jobs were buried at once: they do not parse, and another attempt would not help.</p>
{_list(found.faults)}
</section>
</main>
</body>
</html>
"""


def _totals(found: Summary) -> str:
    total = found.total
    numbers = [
        ("files measured", f"{total.files:,}"),
        ("files dead", f"{len(found.faults):,}"),
        ("lines", f"{total.lines:,}"),
        ("functions", f"{total.functions:,}"),
        ("classes", f"{total.classes:,}"),
        ("docstring coverage", f"{total.coverage:.1%}"),
    ]
    tiles = "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in numbers)
    return f'<dl class="totals">\n{tiles}\n</dl>'


def _coverage(caption: str, shares: Sequence[Share]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(share.name)}</th><td>{share.coverage:.0%}</td>'
        f"<td>{share.documented:,} of {share.documentable:,}</td></tr>"
        for share in shares
    )
    return (
        f"<table>\n<caption>{caption}</caption>\n<thead><tr>"
        '<th scope="col">package</th><th scope="col">coverage</th>'
        '<th scope="col">documented</th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>"
    )


def _missing(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        '<section class="warning">\n<h2>Incomplete</h2>\n'
        f"<p>Nothing is known of these files ({len(names):,}). Their jobs had not ended when the "
        "run's time was up, or died without having measured: see the queue's dead letters.</p>\n"
        f"{_list(names)}\n</section>\n"
    )


def _list(texts: Iterable[str]) -> str:
    items = "\n".join(f"<li><code>{escape(text)}</code></li>" for text in texts)
    return f"<ul>\n{items}\n</ul>"
