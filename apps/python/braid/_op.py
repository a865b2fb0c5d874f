"""Ops of one's own."""
from collections.abc import Callable, Sequence

from braid import _braid
from braid._braid import Tensor, no_grad


def custom_op(
    forward: Callable[..., Tensor],
    backward: Callable[[Tensor, list[Tensor], Tensor], Sequence[Tensor | None]],
    name: str = "custom_op",
) -> Callable[..., Tensor]:
    """An op of your own: forward(*xs) -> y, and backward(dy, xs, y) -> one gradient for each of xs, or None.

    xs and y come to backward without history. The op has no second derivative: taking one raises.

        cube = braid.custom_op(lambda x: x * x * x, lambda dy, xs, y: [3 * xs[0] * xs[0] * dy])
    """

    def op(*xs: Tensor) -> Tensor:
        with no_grad():
            values = [x.detach() for x in xs]
            y = forward(*values)
        if not isinstance(y, Tensor):
            raise _braid.MisuseError(f"[{name}] forward: expected a tensor, found {type(y).__name__}")
        return _braid._record(name, y, list(xs), lambda dy: list(backward(dy, values, y)))

    op.__name__ = op.__qualname__ = name
    op.__doc__ = forward.__doc__
    return op
