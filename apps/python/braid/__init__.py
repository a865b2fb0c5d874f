"""Braid: tensors with reverse-mode derivatives, layers and DCFormers. Shapes, units, errors and formulas of the ops are
those of the C++ headers, from which they are made."""
from braid import _braid
from braid._braid import *  # noqa: F403
from braid._braid import Tensor, no_grad
from braid._chart import Chart, heat_map, plot
from braid._run import Run, Study, train

__all__ = [name for name in dir(_braid) if not name.startswith("_")] + [
    "Chart", "Run", "Study", "custom_op", "heat_map", "plot", "tensor", "train"]

tensor = _braid.asarray


def custom_op(forward, backward, name="custom_op"):
    """An op of your own: forward(*xs) -> y, and backward(dy, xs, y) -> one gradient for each of xs, or None.

    xs and y come to backward without history. The op has no second derivative: taking one raises.

        cube = braid.custom_op(lambda x: x * x * x, lambda dy, xs, y: [3 * xs[0] * xs[0] * dy])
    """

    def op(*xs):
        with no_grad():
            values = [x.detach() for x in xs]
            y = forward(*values)
        if not isinstance(y, Tensor):
            raise _braid.MisuseError(f"[{name}] forward: expected a tensor, found {type(y).__name__}")
        return _braid._record(name, y, list(xs), lambda dy: list(backward(dy, values, y)))

    op.__name__ = op.__qualname__ = name
    op.__doc__ = forward.__doc__
    return op
