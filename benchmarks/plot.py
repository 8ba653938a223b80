"""Curves as SVG files, written where `PLOTS` names a folder: `PLOTS=docs/figures make bench
ARGS=growth`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pygal
from pygal.style import CleanStyle


def plot(
    name: str,
    title: str,
    axes: tuple[str, str],
    curves: Mapping[str, Sequence[tuple[float, float]]],
) -> None:
    """Write `name`.svg: curves by their names, each of points (x, y), with the titles of both
    axes.
    """
    place = os.environ.get("PLOTS", "")
    if not place:
        return
    chart = pygal.XY(
        title=title,
        x_title=axes[0],
        y_title=axes[1],
        style=CleanStyle,
        width=760,
        height=420,
        dots_size=2,
        range=(0, max(y for points in curves.values() for _, y in points)),
        legend_at_bottom=True,
        js=(),  # a picture, without a script from elsewhere
        explicit_size=True,
        include_x_axis=True,
    )
    for curve, points in curves.items():
        chart.add(curve, list(points))
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.svg").write_bytes(chart.render())
