"""The extension linalg of the Python array API standard."""
import builtins
from collections import namedtuple

from braid import _braid as braid
from braid.array_api import _of_one, _reduced, inf, matmul, matrix_transpose, sum, tensordot, vecdot  # noqa: A004, F401

eigh_result = namedtuple("eigh_result", "eigenvalues eigenvectors")
qr_result = namedtuple("qr_result", "Q R")
slogdet_result = namedtuple("slogdet_result", "sign logabsdet")
svd_result = namedtuple("svd_result", "U S Vh")
_KINDS = {"fro": "frobenius", "nuc": "nuclear", 2: "spectral", 1: "one", inf: "infinity"}


def cholesky(x, /, *, upper=False):
    return braid.cholesky(x).mT if upper else braid.cholesky(x)


def cross(x1, x2, /, *, axis=-1):
    return braid.cross(x1, x2, axis)


def diagonal(x, /, *, offset=0):
    return braid.diagonal(x, offset)


def eigh(x, /):
    return eigh_result(*braid.eigh(x))


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    if ord not in _KINDS:
        raise ValueError(f"matrix_norm: expected an ord of {list(_KINDS)}, found {ord!r}")
    y = braid.matrix_norm(x, _KINDS[ord])
    return y[..., None, None] if keepdims else y


def matrix_power(x, n, /):
    return braid.matrix_power(x if n >= 0 else braid.inverse(x), builtins.abs(n))


def matrix_rank(x, /, *, rtol=None):
    return braid.matrix_rank(x) if rtol is None else braid.matrix_rank(x, rtol)


def outer(x1, x2, /):
    return braid.outer(x1, x2)


def pinv(x, /, *, rtol=None):
    return braid.pinv(x) if rtol is None else braid.pinv(x, rtol)


def qr(x, /, *, mode="reduced"):
    if mode != "reduced" and x.shape[-2] > x.shape[-1]:
        raise ValueError(f"qr: expected the mode reduced, found {mode!r}")
    return qr_result(*braid.qr(x))


def slogdet(x, /):
    return slogdet_result(*braid.slogdet(x))


def solve(x1, x2, /):
    return braid.solve(x1, x2)


def svd(x, /, *, full_matrices=True):
    if full_matrices and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"svd: expected square matrices or full_matrices=False, found {x.shape}")
    return svd_result(*braid.svd(x))


def trace(x, /, *, offset=0, dtype=None):
    return sum(braid.diagonal(x, offset), axis=-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    return _reduced(lambda x, axes, keep=False: braid.norm(x, ord, axes, keep), x, axis, keepdims)


det, eigvalsh, inv, svdvals = map(_of_one, ("det", "eigvalsh", "inv", "svdvals"),
                                  (braid.det, braid.eigvalsh, braid.inverse, braid.svdvals))
