"""The types of the Python array API standard: which there are, their kinds and limits."""
import builtins
from collections import namedtuple

from braid import _braid as braid
from braid._braid import Tensor, float32, float64, int32, int64, uint8


class _Bool:
    """The type of masks: equal to uint8. astype() to it asks what is not 0."""

    def __eq__(self, other):
        return other is self or other is uint8

    def __hash__(self):
        return hash(uint8)

    def __repr__(self):
        return "braid.array_api.bool"


bool = _Bool()  # noqa: A001
_SIGNED, _UNSIGNED = {"int32": int32, "int64": int64}, {"uint8": uint8}
_FLOATS = {"float32": float32, "float64": float64}
_INTEGERS = (*_SIGNED.values(), *_UNSIGNED.values())
_ORDERS = (uint8, int32, int64), (float32, float64)
_KINDS = {"bool": {"bool": bool}, "signed integer": _SIGNED, "unsigned integer": _UNSIGNED,
          "integral": _SIGNED | _UNSIGNED, "real floating": _FLOATS, "complex floating": {},
          "numeric": _SIGNED | _UNSIGNED | _FLOATS}

finfo_object = namedtuple("finfo_object", "bits eps max min smallest_normal dtype")
iinfo_object = namedtuple("iinfo_object", "bits max min dtype")


def _type(dtype):
    return uint8 if dtype is bool else dtype


def _type_of(x):
    return x.dtype if isinstance(x, Tensor) else _type(x)


def result_type(*arrays_and_dtypes):
    """The type that holds all of these. No op converts to it: astype() does."""
    types = {_type_of(x) for x in arrays_and_dtypes if not isinstance(x, (int, float))}
    numbers = [x for x in arrays_and_dtypes if isinstance(x, float)]
    for order in _ORDERS:
        if types and types <= set(order) and (order is _ORDERS[1] or not numbers):
            return builtins.max(types, key=order.index)
    raise TypeError(f"result_type: expected types of one kind, found {sorted(map(str, [*types, *numbers]))}")


def can_cast(from_, to, /):
    to = _type(to)
    return builtins.any(_type_of(from_) in order[:order.index(to) + 1] for order in _ORDERS if to in order)


def isdtype(dtype, kind):
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    return _type(dtype) in map(_type, _KINDS[kind].values()) if isinstance(kind, str) else _type(dtype) == _type(kind)


def finfo(type, /):
    bits, digits, exponent = {float64: (64, 52, 1023), float32: (32, 23, 127), braid.bfloat16: (16, 7, 127),
                              braid.float16: (16, 10, 15)}[_type_of(type)]
    largest = (2 - 2.0**-digits) * 2.0**exponent
    return finfo_object(bits, 2.0**-digits, largest, -largest, 2.0 ** (1 - exponent), _type_of(type))


def iinfo(type, /):
    dtype = _type_of(type)
    bits, signed = {int64: (64, 1), int32: (32, 1), uint8: (8, 0)}[dtype]
    return iinfo_object(bits, 2 ** (bits - signed) - 1, -signed * 2 ** (bits - 1), dtype)
