"""Charts that a notebook shows."""
from braid import _braid


class Chart:
    """A picture as SVG."""

    def __init__(self, svg):
        self.svg = svg

    def save(self, path):
        with open(path, "w") as file:
            file.write(self.svg)

    def _repr_svg_(self):
        return self.svg


def plot(*runs):
    """The curves of training runs, by step: each a braid.Run or its folder."""
    return Chart(_braid._run_curves([str(getattr(run, "folder", run)) for run in runs]))


def heat_map(values, titles=(), rows=(), columns=(), unit="", across=4):
    """Values (rows, columns), or (panels, rows, columns) such as the maps of heads, as colors; `across` panels beside
    one another."""
    return Chart(_braid._heat_map(_braid.asarray(values), list(titles), list(rows), list(columns), unit, across))
