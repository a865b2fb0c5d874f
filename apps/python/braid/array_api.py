"""The Python array API standard, 2024.12, on Braid's tensors: its names, keywords and defaults. array_api.md says what
differs from the standard, above all: types are not promoted, and masks are uint8."""
import builtins
import math
import operator
from collections import namedtuple

from braid import _braid as braid
from braid._array_types import (_INTEGERS, _KINDS, _type, bool, can_cast, finfo, iinfo, isdtype,  # noqa: A004, F401
                                result_type)
from braid._braid import Tensor, float32, float64, int32, int64, uint8  # noqa: F401

__array_api_version__ = "2024.12"
e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None


def _named(name, function):
    function.__name__ = function.__qualname__ = name
    return function


# --- types ---


def astype(x, dtype, /, *, copy=True, device=None):
    x = _moved(x, None, device)
    y = x != 0 if dtype is bool and x.dtype != uint8 else x.to(_type(dtype))
    return y.clone() if copy and y.dtype == x.dtype else y


class __array_namespace_info__:  # noqa: N801
    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": braid.max_rank}

    def default_device(self):
        return "cpu"

    def devices(self):
        return ["cpu", *(f"cuda:{i}" for i in range(braid.cuda_device_count()))]

    def default_dtypes(self, *, device=None):
        return {"real floating": float32, "integral": int64, "indexing": int64}

    def dtypes(self, *, device=None, kind=None):
        kinds = kind if isinstance(kind, tuple) else ("bool", "numeric") if kind is None else (kind,)
        return {name: dtype for one in kinds for name, dtype in _KINDS[one].items()}


# --- creation ---


def _moved(x, dtype, device):
    x = x if dtype is None else x.to(_type(dtype))
    return x if device is None else x.to(device)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    if copy is False and not (isinstance(obj, Tensor) or hasattr(obj, "__dlpack__")):
        raise ValueError("asarray: expected an array to share memory with, found lists or numbers; use copy=None")
    x = braid.asarray(obj) if dtype is None or dtype is bool else braid.asarray(obj, dtype)
    x = _moved(astype(x, bool, copy=False) if dtype is bool else x, None, device)
    return x.clone() if copy else x


def from_dlpack(x, /, *, device=None, copy=None):
    y = _moved(braid.from_dlpack(x), None, device)
    return y.clone() if copy else y


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    begin, end = (0, start) if stop is None else (start, stop)
    return _moved(braid.arange(begin, end, step), dtype, device)


def empty(shape, *, dtype=None, device=None):
    return braid.empty(shape, _type(dtype) or float32, device or "cpu")


def full(shape, fill_value, *, dtype=None, device=None):
    return braid.contiguous(braid.expand(asarray(fill_value, dtype=dtype, device=device), shape))


def zeros(shape, *, dtype=None, device=None):
    return braid.zeros(shape, _type(dtype) or float32, device or "cpu")


def ones(shape, *, dtype=None, device=None):
    return braid.ones(shape, _type(dtype) or float32, device or "cpu")


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def empty_like(x, /, *, dtype=None, device=None):
    return empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    return _moved(braid.eye(n_rows, n_rows if n_cols is None else n_cols, k), dtype, device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    if num == 0:
        return empty((0,), dtype=dtype, device=device)
    x = braid.linspace(start, stop, num if endpoint else num + 1, _type(dtype) or float32)
    return _moved(x if endpoint else x[:num], None, device)


def meshgrid(*arrays, indexing="xy"):
    return braid.meshgrid(list(arrays), order=indexing if len(arrays) > 1 else "ij")


# --- functions of elements ---


def _of_one(name, of):
    return _named(name, lambda x, /: of(x))


def _of_two(name, of):
    """A number takes the type of the tensor beside it."""

    def function(x1, x2, /):
        if not isinstance(x1, Tensor):
            x1 = full((), x1, dtype=x2.dtype, device=x2.device)
        if not isinstance(x2, Tensor):
            x2 = full((), x2, dtype=x1.dtype, device=x1.device)
        return of(x1, x2)

    return _named(name, function)


def sign(x, /):
    return braid.cast(x > 0, x.dtype) - braid.cast(x < 0, x.dtype) if x.dtype in _INTEGERS else braid.sign(x)


def _of_integers_too(of):
    return lambda x: x.clone() if x.dtype in _INTEGERS else of(x)


for _name in ("abs acos acosh asin asinh atan atanh bitwise_invert cos cosh exp expm1 isfinite isinf isnan log log1p "
              "log2 log10 logical_not reciprocal signbit sin sinh square sqrt tan tanh").split():
    globals()[_name] = _of_one(_name, getattr(braid, _name))
for _name in ("ceil", "floor", "round", "trunc"):
    globals()[_name] = _of_one(_name, _of_integers_too(getattr(braid, _name)))
negative, positive = _of_one("negative", braid.neg), _of_one("positive", operator.pos)
for _name in ("add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign "
              "floor_divide hypot logaddexp logical_and logical_or logical_xor maximum minimum nextafter pow "
              "remainder").split():
    globals()[_name] = _of_two(_name, getattr(braid, _name))
for _name, _of in {"divide": "div", "equal": "eq", "greater": "gt", "greater_equal": "ge", "less": "lt",
                   "less_equal": "le", "multiply": "mul", "not_equal": "ne", "subtract": "sub"}.items():
    globals()[_name] = _of_two(_name, getattr(braid, _of))


def clip(x, /, min=None, max=None):
    y = x if min is None else maximum(x, min)  # noqa: F821
    y = y if max is None else minimum(y, max)  # noqa: F821
    return y.clone() if y is x else y


# --- functions of the same meaning under other names of arguments ---

_SAME = {
    "tril": lambda x, /, *, k=0: braid.tril(x, k),
    "triu": lambda x, /, *, k=0: braid.triu(x, k),
    "zeros_like": lambda x, /, *, dtype=None, device=None: full_like(x, 0, dtype=dtype, device=device),
    "ones_like": lambda x, /, *, dtype=None, device=None: full_like(x, 1, dtype=dtype, device=device),
    "where": lambda condition, x1, x2, /: braid.where(condition, x1, x2),
    "matmul": lambda x1, x2, /: x1 @ x2,
    "matrix_transpose": lambda x, /: x.mT,
    "vecdot": lambda x1, x2, /, *, axis=-1: braid.vecdot(x1, x2, axis),
    "broadcast_arrays": lambda *arrays: braid.broadcast_tensors(list(arrays)),
    "broadcast_to": lambda x, /, shape: braid.broadcast_to(x, shape),
    "expand_dims": lambda x, /, axis: braid.unsqueeze(x, axis),
    "stack": lambda arrays, /, *, axis=0: braid.stack(list(arrays), axis),
    "tile": lambda x, repetitions, /: braid.tile(x, list(repetitions)),
    "unstack": lambda x, /, *, axis=0: tuple(braid.unbind(x, axis)),
    "searchsorted": lambda x1, x2, /, *, side="left", sorter=None: braid.searchsorted(
        x1 if sorter is None else x1[sorter], x2, side == "right"),
    "take": lambda x, indices, /, *, axis=None: braid.index_select(x, indices, 0 if axis is None else axis),
    "take_along_axis": lambda x, indices, /, *, axis=-1: braid.take_along_axis(x, indices, axis),
    "argsort": lambda x, /, *, axis=-1, descending=False, stable=True: braid.argsort(x, axis, descending),
    "sort": lambda x, /, *, axis=-1, descending=False, stable=True: braid.sort(x, axis, descending).values,
    "unique_values": lambda x, /: braid.unique(x).values,
}
for _name, _function in _SAME.items():
    globals()[_name] = _named(_name, _function)


# --- linear algebra ---


def tensordot(x1, x2, /, *, axes=2):
    return braid.tensordot(x1, x2, axes) if isinstance(axes, int) else braid.tensordot(x1, x2, *map(tuple, axes))


# --- order and shape ---


def _axes(axis, ndim):
    """Axes as a tuple of numbers from 0."""
    axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(operator.index(a) + (ndim if a < 0 else 0) for a in axes)


def concat(arrays, /, *, axis=0):
    if axis is None:
        return braid.concat([braid.ravel(x) for x in arrays], 0)
    return braid.concat(list(arrays), axis)


def flip(x, /, *, axis=None):
    return braid.flip(x, _axes(axis, x.ndim)) if x.ndim else x.clone()


def moveaxis(x, source, destination, /):
    source, destination = _axes(source, x.ndim), _axes(destination, x.ndim)
    order = [a for a in range(x.ndim) if a not in source]
    for to, of in sorted(zip(destination, source, strict=True)):
        order.insert(to, of)
    return permute_dims(x, order)


def permute_dims(x, /, axes):
    return braid.permute(x, axes) if x.ndim else x


def repeat(x, repeats, /, *, axis=None):
    if isinstance(repeats, Tensor):
        repeats = repeats.item() if repeats.size == 1 else repeats.tolist()
    return braid.repeat(braid.ravel(x) if axis is None else x, repeats, axis or 0)


def reshape(x, /, shape, *, copy=None):
    y = braid.reshape(x, shape)
    if copy is False and y.size and y.data_ptr() != x.data_ptr():
        raise ValueError(f"reshape: {x.shape} with strides {x.strides} has no view of shape {shape}; use copy=None")
    return y.clone() if copy else y


def roll(x, /, shift, *, axis=None):
    if axis is None:
        return braid.reshape(braid.roll(braid.ravel(x), shift, 0), x.shape)
    axes = _axes(axis, x.ndim)
    return braid.roll(x, [shift] * len(axes) if isinstance(shift, int) else list(shift), axes)


def squeeze(x, /, axis):
    for a in sorted(_axes(axis, x.ndim), reverse=True):
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: expected axes of size 1, found axis {a} of {x.shape}")
        x = braid.squeeze(x, a)
    return x


# --- searching, sorting, sets ---


def _of_all(name):
    along, of_all = getattr(braid, name), getattr(braid, name + "_of_all")

    def function(x, /, *, axis=None, keepdims=False):
        if axis is not None:
            return along(x, axis, keepdims)
        return braid.reshape(of_all(x), (1,) * x.ndim) if keepdims else of_all(x)

    return _named(name, function)


argmax, argmin = _of_all("argmax"), _of_all("argmin")


def nonzero(x, /):
    if x.ndim == 0:
        raise ValueError("nonzero: expected at least one axis, found none")
    return tuple(braid.unbind(braid.nonzero(x), 1))


unique_all_result = namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = namedtuple("unique_counts_result", "values counts")
unique_inverse_result = namedtuple("unique_inverse_result", "values inverse_indices")


def unique_all(x, /):
    values, inverse, counts = braid.unique(x)
    first = braid.cumsum(counts) - counts  # in the order of values, where equal elements stand by their index
    indices = braid.index_select(braid.argsort(braid.ravel(inverse)), first)
    return unique_all_result(values, indices, inverse, counts)


def unique_counts(x, /):
    all_ = unique_all(x)
    return unique_counts_result(all_.values, all_.counts)


def unique_inverse(x, /):
    all_ = unique_all(x)
    return unique_inverse_result(all_.values, all_.inverse_indices)


# --- reductions and scans ---


def _reduced(of, x, axis, keepdims):
    axes = _axes(axis, x.ndim)
    return of(x, axes, keepdims) if axes else of(x[..., None], -1)  # over no axis: each element by itself


def _reduction(name):
    of = getattr(braid, name)

    def function(x, /, *, axis=None, keepdims=False):
        return _reduced(of, x, axis, keepdims)

    return _named(name, function)


for _name in ("all", "any", "count_nonzero", "max", "mean", "min"):
    globals()[_name] = _reduction(_name)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    return _moved(_reduced(braid.sum, _moved(x, dtype, None), axis, keepdims), dtype, None)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    return _moved(_reduced(braid.prod, _moved(x, dtype, None), axis, keepdims), dtype, None)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    y = _reduced(lambda x, axes, keep=False: braid.var(x, axes, 0, keep), x, axis, keepdims)
    n = math.prod(x.shape[a] for a in _axes(axis, x.ndim))
    return y * n / (n - correction) if correction else y


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return braid.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _scan(name, of, first):
    def function(x, /, *, axis=None, dtype=None, include_initial=False):
        if axis is None and x.ndim > 1:
            raise ValueError(f"{name}: expected an axis of the {x.ndim}, found none")
        x = _moved(x if x.ndim else x[None], dtype, None)
        y = of(x, 0 if axis is None else axis)
        if include_initial:
            shape = list(y.shape)
            shape[axis or 0] = 1
            y = concat([full(shape, first, dtype=y.dtype, device=y.device), y], axis=axis or 0)
        return _moved(y, dtype, None)

    return _named(name, function)


cumulative_sum = _scan("cumulative_sum", braid.cumsum, 0)
cumulative_prod = _scan("cumulative_prod", braid.cumprod, 1)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    parts = [part for part in (prepend, x, append) if part is not None]
    return braid.diff(concat(parts, axis=axis) if len(parts) > 1 else x, n, axis)


from braid import _array_linalg as linalg  # noqa: E402, F401  which needs what is above
