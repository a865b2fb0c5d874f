#!/usr/bin/env python3
"""braid.array_api: every name of the standard that scripts/array_api lists, and calls with the standard's keywords
against NumPy, which has the standard too."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

import braid
from braid import array_api as xp

try:
    import numpy as np
except ImportError:
    np = None

# The calls know x (2, 3, 4) and y (3, 1), f64, v (5), matrices m (2, 3, 3), integers n (4), ids (3).
CALLS = """
sum(x, axis=1); sum(x, axis=(0, -1), keepdims=True); sum(x, keepdims=True); sum(n); sum(n, dtype=float64)
sum(x, axis=()); prod(x, axis=0); mean(x, axis=(1,)); max(x); max(x, axis=2, keepdims=True); min(x, axis=(0, 1))
any(n > 2); all(x > 9, axis=0); std(x, axis=1, correction=1); var(x, axis=(0, 2), correction=0.5)
var(x, keepdims=True); count_nonzero(n, axis=0); argmax(x); argmax(x, axis=1, keepdims=True); argmin(x, axis=-1)
argmin(x, keepdims=True); cumulative_sum(v); cumulative_sum(x, axis=1, include_initial=True)
cumulative_prod(x, axis=-1); diff(x, axis=0, prepend=x[:1]); add(x, y); add(x, 2); subtract(2, x); multiply(x, y)
divide(1, x); pow(x, 2); remainder(n, 3); floor_divide(n, 2); equal(n, 3); not_equal(x, y); less(n, 2)
less_equal(2, n); greater(x, 0.5); greater_equal(x, y); logical_not(n > 2); maximum(x, 1); minimum(n, 2)
clip(x, 0.5, 1); clip(x, max=y); clip(n, min=2); hypot(x, y); atan2(x, y); copysign(x, -y); floor(x); floor(n)
round(x); negative(x); positive(n); abs(-n); sign(-x); sign(n - 2); reciprocal(x); where(n > 2, n, 0); where(x > y, x, y)
bitwise_and(n, 5); bitwise_xor(n, 6); bitwise_left_shift(n, 2); bitwise_invert(n); n & 6; n | 8; n ^ 1; ~n; n << 1
12 >> n; 5 % n; 7 // n; 6 & n; -7 % v; +x; abs(x); reshape(x, (4, -1)); reshape(x, shape=(24,), copy=True)
permute_dims(x, (2, 0, 1)); moveaxis(x, 0, -1); moveaxis(x, (0, 1), (2, 0)); flip(x); flip(x, axis=(0, 2)); roll(x, 3)
roll(x, 1, axis=1); roll(x, (1, 2), axis=(0, 1)); squeeze(y, axis=1); squeeze(y, (-1,)); expand_dims(x, axis=1)
concat([x, x], axis=2); concat((y, y), axis=None); stack([v, v], axis=-1); tile(y, (2, 2)); repeat(v, 2)
repeat(x, 3, axis=1); repeat(v, asarray([1, 0, 2, 1, 3])); broadcast_to(y, (2, 3, 4)); unstack(x, axis=1)[2]
tril(m, k=-1); triu(m); broadcast_arrays(x, y)[1]; meshgrid(v, n)[1]; meshgrid(v, n, indexing='ij')[0]; arange(5)
arange(1, 9, 3); arange(3, dtype=float64); linspace(0, 2, 5, dtype=float64)
linspace(0, 2, num=4, dtype=float64, endpoint=False); eye(3, 4, k=1, dtype=float64); eye(2, dtype=int32)
full((2, 3), 7); full((), 2**62 + 1); full_like(x, 3); zeros((2, 0), dtype=float64); ones_like(n)
asarray([[1, 2], [3, 4]]); asarray([2**62 + 1]); asarray([[n[0], n[1]], [7, n[2]]]); asarray(0.5, dtype=float64); zeros_like(x, dtype=int32)
astype(x, int64); astype(n, float64); sort(x, axis=1); sort(x, stable=True); argsort(x, axis=0)
searchsorted(sort(v), v, side='right'); searchsorted(v, v, sorter=argsort(v)); take(x, ids, axis=1); take(v, ids)
take_along_axis(x, argsort(x, axis=1), axis=1); nonzero(n - 1)[0]; sort(unique_values(n)); unique_counts(n).counts
unique_inverse(n).inverse_indices; unique_all(n).indices; matmul(m, m); matmul(v, v); matrix_transpose(m)
tensordot(x, x, axes=((0, 2), (0, 2))); tensordot(v, v, axes=0); vecdot(x, x, axis=1)
linalg.vector_norm(x, axis=(0, 2), keepdims=True); linalg.vector_norm(v, ord=1); linalg.cross(m, m[0])
linalg.diagonal(m, offset=1); linalg.trace(m, offset=1); linalg.outer(v, v); linalg.matrix_power(m, 3)
"""
LAPACK = """
linalg.inv(m); linalg.det(m); linalg.solve(m, m); linalg.slogdet(m).logabsdet; linalg.svd(m).S
linalg.matrix_power(m, -2); linalg.svdvals(m); linalg.matrix_norm(m, ord='nuc', keepdims=True)
linalg.matrix_norm(m, ord=1); linalg.pinv(m); linalg.matrix_rank(m)
linalg.cholesky(matmul(m, matrix_transpose(m)), upper=True); linalg.eigh(m + matrix_transpose(m)).eigenvalues
"""
NO_COMPLEX = set("conj imag real fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift "
                 "ifftshift".split())


class Names(unittest.TestCase):
    def test_every_name_of_the_standard(self):
        path = str(pathlib.Path(__file__).resolve().parents[3] / "scripts" / "array_api")
        loader = importlib.machinery.SourceFileLoader("names_of_the_standard", path)
        names = importlib.util.module_from_spec(importlib.util.spec_from_loader("names_of_the_standard", loader))
        loader.exec_module(names)
        every = {name for chapter in names.EQUAL.values() for name in chapter.split()}
        every |= {name for table in (names.OTHER, names.MISSING) for chapter in table.values() for name in chapter}
        self.assertGreater(len(every), 160)
        self.assertEqual({name for name in every if not hasattr(xp, name) and not hasattr(xp.linalg, name)}, NO_COMPLEX)

    def test_the_namespace_of_a_tensor(self):
        self.assertIs(braid.ones(2).__array_namespace__(), xp)
        self.assertIs(braid.ones(2).__array_namespace__(api_version="2023.12"), xp)
        with self.assertRaisesRegex(braid.MisuseError, "found 2031.12"):
            braid.ones(2).__array_namespace__(api_version="2031.12")
        info = xp.__array_namespace_info__()
        self.assertEqual(info.dtypes(kind=("integral", "real floating")).keys(),
                         {"int32", "int64", "uint8", "float32", "float64"})
        self.assertIn(info.default_device(), info.devices())


class Types(unittest.TestCase):
    def test_masks_are_uint8(self):
        mask = xp.asarray([True, False])
        self.assertEqual((mask.dtype, mask.tolist()), (braid.uint8, [1, 0]))
        self.assertTrue(mask.dtype == xp.bool and xp.bool == mask.dtype and mask.dtype != xp.int32)
        self.assertEqual(xp.astype(xp.asarray([0.0, 0.5, 256.0]), xp.bool).tolist(), [0, 1, 1])
        self.assertEqual(xp.asarray([0, 0.25], dtype=xp.bool).tolist(), [0, 1])
        self.assertTrue(xp.isdtype(mask.dtype, "bool") and xp.isdtype(xp.int32, ("real floating", "signed integer")))
        self.assertFalse(xp.isdtype(xp.int64, "bool") or xp.isdtype(xp.float32, xp.float64))

    def test_a_common_type_is_asked_for_and_never_taken(self):
        x = xp.ones(2)
        self.assertEqual(xp.result_type(x, xp.float32, 2.0), xp.float32)
        self.assertEqual(xp.result_type(xp.int64, xp.ones(1, dtype=xp.bool), xp.int32, 1), xp.int64)
        for mixed in [(x, xp.int32), (xp.int32, 0.5), (1, 2)]:
            with self.assertRaisesRegex(TypeError, "of one kind"):
                xp.result_type(*mixed)
        self.assertTrue(xp.can_cast(x, xp.float64) and xp.can_cast(xp.int32, xp.int32))
        self.assertFalse(xp.can_cast(xp.int64, xp.int32) or xp.can_cast(xp.int64, xp.float64))
        with self.assertRaises(braid.MisuseError):
            xp.add(x, xp.ones(2, dtype=xp.float64))

    @unittest.skipIf(np is None, "NumPy is not installed")
    def test_limits(self):
        for name in ("float64", "float32", "float16"):
            ours, theirs = xp.finfo(getattr(braid, name)), np.finfo(name)
            for member in ("bits", "eps", "max", "min", "smallest_normal"):
                self.assertEqual(getattr(ours, member), getattr(theirs, member))
        for name in ("int64", "int32", "uint8"):
            ours, theirs = xp.iinfo(getattr(braid, name)), np.iinfo(name)
            self.assertEqual((ours.bits, ours.max, ours.min), (theirs.bits, theirs.max, theirs.min))

    def test_copies(self):
        x = xp.ones(3)
        self.assertEqual(xp.asarray(x).data_ptr(), x.data_ptr())
        self.assertNotEqual(xp.asarray(x, copy=True).data_ptr(), x.data_ptr())
        self.assertNotEqual(xp.astype(x, xp.float32).data_ptr(), x.data_ptr())
        self.assertEqual(xp.astype(x, xp.float32, copy=False).data_ptr(), x.data_ptr())
        self.assertEqual(xp.reshape(x, (3, 1), copy=False).data_ptr(), x.data_ptr())
        with self.assertRaisesRegex(ValueError, "no view"):
            xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False)
        with self.assertRaisesRegex(ValueError, "lists"):
            xp.asarray([1, 2], copy=False)

    def test_cases_without_a_result(self):
        with self.assertRaisesRegex(ValueError, "axis 0 of"):
            xp.squeeze(xp.ones((2, 1)), axis=(0, 1))
        self.assertTrue(xp.isnan(xp.var(xp.ones((1, 2)), axis=0, correction=1)).all())


@unittest.skipIf(np is None or np.__version__ < "2.1", "NumPy 2.1, which has the standard's names, is not installed")
class Calls(unittest.TestCase):
    def check(self, calls):
        random = np.random.default_rng(0)
        arrays = {"x": random.normal(size=(2, 3, 4)), "y": random.normal(size=(3, 1)), "v": random.normal(size=5),
                  "m": random.normal(size=(2, 3, 3)), "n": np.array([3, 1, 3, 2]), "ids": np.array([2, 0, 1])}
        tensors = {name: xp.asarray(array) for name, array in arrays.items()}
        for call in calls.replace("\n", "; ").strip("; ").split("; "):
            with self.subTest(call):
                expected = np.asarray(eval(call, {**vars(np), "isdtype": np.isdtype, **arrays}))
                got = eval(call, {**vars(xp), **tensors})
                self.assertEqual(got.shape, expected.shape)
                if expected.dtype != np.float64:  # integers, masks, and f32 by default
                    self.assertEqual(str(np.asarray(got).dtype), str(expected.dtype).replace("bool", "uint8"))
                np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-10, atol=1e-12)

    def test_calls(self):
        self.check(CALLS)

    def test_calls_of_lapack(self):
        try:
            braid.det(braid.ones((1, 1)))
        except braid.Error:
            self.skipTest("a build without LAPACK")
        self.check(LAPACK)


if __name__ == "__main__":
    unittest.main()
