"""Braid: tensors with reverse-mode derivatives, layers and DCFormers. Shapes, units, errors and formulas of the ops are
those of the C++ headers, from which they are made."""
from braid import _braid, array_api
from braid._braid import *  # noqa: F403
from braid._braid import __version__
from braid._chart import Chart, heat_map, plot
from braid._op import custom_op
from braid._run import Run, Study, train

__all__ = [name for name in dir(_braid) if not name.startswith("_")] + [
    "Chart", "Run", "Study", "array_api", "custom_op", "heat_map", "plot", "train"]
for _name in __all__:
    if _name.endswith("Error"):
        getattr(_braid, _name).__module__ = "braid"
