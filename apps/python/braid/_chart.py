"""Charts that a notebook shows."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from braid import _braid

if TYPE_CHECKING:
    from braid._run import Run


class Chart:
    """A picture as SVG."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str) -> None:
        with open(path, "w") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


def plot(*runs: Run | str) -> Chart:
    """The curves of training runs, by step: each a braid.Run or its folder."""
    return Chart(_braid._run_curves([str(getattr(run, "folder", run)) for run in runs]))


def heat_map(
    values: Any,
    titles: Sequence[str] = (),
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    unit: str = "",
    across: int = 4,
) -> Chart:
    """Values (rows, columns), or (panels, rows, columns) such as the maps of heads, as colors; `across` panels beside
    one another."""
    return Chart(_braid._heat_map(_braid.asarray(values), list(titles), list(rows), list(columns), unit, across))
