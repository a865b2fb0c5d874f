"""Braid: tensors with reverse-mode derivatives, layers and DCFormers. Shapes, units, errors and formulas of the ops are
those of the C++ headers, from which they are made."""
from braid import _braid, array_api as array_api
from braid._braid import *  # noqa: F403
from braid._braid import __version__ as __version__
from braid._chart import Chart as Chart, heat_map as heat_map, plot as plot  # "as": mypy takes them for exported
from braid._op import custom_op as custom_op
from braid._run import Run as Run, Study as Study, train as train

__all__ = [name for name in dir(_braid) if not name.startswith("_")] + [
    "Chart", "Run", "Study", "array_api", "custom_op", "heat_map", "plot", "train"]
for _name in __all__:
    if _name.endswith("Error"):
        getattr(_braid, _name).__module__ = "braid"
