#!/usr/bin/env python3
"""The Python module: tensors, indices, derivatives, errors. NumPy is the reference where it is installed."""
import copy
import importlib.util
import pickle
import subprocess
import sys
import threading
import unittest

import braid

try:
    import numpy as np
except ImportError:
    np = None


class Tensors(unittest.TestCase):
    def test_a_tensor_of_nested_lists(self):
        x = braid.tensor([[1, 2, 3], [4, 5, 6]])
        self.assertEqual((x.shape, x.dtype, x.ndim, x.size), ((2, 3), braid.int64, 2, 6))
        self.assertEqual(x.tolist(), [[1, 2, 3], [4, 5, 6]])
        self.assertEqual(braid.tensor([0.5, 1]).dtype, braid.float32)
        self.assertEqual(braid.tensor([1, 2], dtype=braid.float64).dtype, braid.float64)
        one = braid.tensor(1, dtype=braid.float64)
        self.assertEqual((braid.tensor([[one, 2]]).dtype, braid.tensor([x[0], x[1]]).tolist()), (braid.float64, x.tolist()))
        for bad in ([[1, 2], [3]], [[1], 2], ["a"], [[1, 2], 3], [one, x[0, 0]]):
            with self.assertRaises(braid.MisuseError, msg=str(bad)):
                braid.tensor(bad)

    def test_a_number_with_an_index_may_be_a_float(self):
        class Half:  # as PyTorch's scalars, whose type has __index__
            def __float__(self):
                return 0.5

            def __int__(self):
                return 0

            def __index__(self):
                raise TypeError("no integer")

        x = braid.tensor([Half(), Half()])
        self.assertEqual((x.tolist(), x.dtype), ([0.5, 0.5], braid.float32))

    def test_a_tensor_has_memory_of_its_own(self):
        x = braid.asarray([1.0, 2.0]).requires_grad_()
        y = braid.tensor(x)
        y[0] = 5
        self.assertEqual((x.tolist(), y.requires_grad), ([1, 2], False))
        if np is not None:
            array = np.zeros(2)
            copied, shared = braid.tensor(array), braid.asarray(array)
            array[0] = 7
            self.assertEqual((copied.tolist(), shared.tolist()), ([0, 0], [7, 0]))

    def test_factories(self):
        self.assertEqual(braid.zeros((2, 1)).tolist(), [[0], [0]])
        self.assertEqual(braid.full(3, 2.5).tolist(), [2.5, 2.5, 2.5])
        for got, values, dtype in [(braid.arange(3), [0, 1, 2], braid.int64),
                                   (braid.arange(8, 0, -3), [8, 5, 2], braid.int64),
                                   (braid.arange(0.0, 1.0, 0.25), [0, 0.25, 0.5, 0.75], braid.float32)]:
            self.assertEqual((got.tolist(), got.dtype), (values, dtype))

    def test_numbers_of_one_element(self):
        x = braid.tensor([2.5])
        self.assertEqual((float(x), int(x), bool(x), x.item()), (2.5, 2, True, 2.5))
        self.assertEqual([10, 20, 30][braid.tensor(1)], 20)
        self.assertRaises(braid.MisuseError, float, braid.tensor([1.0, 2.0]))

    def test_arithmetic_from_both_sides(self):
        x = braid.tensor([1.0, 2.0, 4.0])
        for got, expected in [(x + 1, [2, 3, 5]), (1 - x, [0, -1, -3]), (2 * x, [2, 4, 8]), (8 / x, [8, 4, 2]),
                              (x ** 2, [1, 4, 16]), (2 ** x, [2, 4, 16]), (-x, [-1, -2, -4]), (x @ x, 21),
                              (x - x, [0, 0, 0]), (braid.stack([x, x]) @ x, [21, 21]),
                              (x @ braid.stack([x, x], 1), [21, 21]), (x > 1.5, [0, 1, 1]),
                              (x == 2, [0, 1, 0]), (~(x > 1.5), [1, 0, 0])]:
            self.assertEqual(got.tolist(), expected)

    def test_numbers_from_the_left_and_in_place(self):
        x, n = braid.tensor([1.0, 2.0, 4.0]), braid.tensor([1, 2, 7])
        masks = x.to(braid.uint8), n.to(braid.uint8)
        for got, expected in [(7 % n, [0, 1, 0]), (7 // x, [7, 3, 1]), (n & 3, [1, 2, 3]), (4 | n, [5, 6, 7]),
                              (~n, [-2, -3, -8]), (n ^ n, [0, 0, 0]), (1 << n, [2, 4, 128]), (n >> 1, [0, 1, 3]),
                              ((x > 1) & (n < 7), [0, 1, 0]), (~(x > 1), [1, 0, 0]), (masks[0] & masks[1], [1, 1, 1])]:
            self.assertEqual(got.tolist(), expected)
        y = x
        y += 1
        y *= x
        self.assertEqual((x.tolist(), y.tolist()), ([1, 2, 4], [2, 6, 20]))

    def test_methods_are_the_functions(self):
        x = braid.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]], dtype=braid.float64)
        for got, expected in [(x.sum(), braid.sum(x)), (x.mean(0), braid.mean(x, 0)), (x.permute(1, 0), x.T),
                              (x.max(1, keep=True), braid.max(x, 1, True)), (x.flip(0, 1), braid.flip(x, (0, 1))),
                              (x.reshape(3, 2), braid.reshape(x, (3, 2))), (x.reshape(-1), braid.ravel(x)),
                              (x.reshape((3, -1)), braid.reshape(x, (3, 2))), (x.split([1, 2], 1)[1], x[:, 1:]),
                              (x.sort().values, braid.sort(x).values), (x.exp().log(), x),
                              ((x > 2).all(), braid.tensor(0)), (x.astype(braid.int64), braid.cast(x, braid.int64))]:
            self.assertTrue(braid.allclose(got.to(braid.float64), expected.to(braid.float64)))
        self.assertNotEqual(x.astype(braid.float64).data_ptr(), x.data_ptr())
        self.assertEqual(x.astype(braid.float64, copy=False).data_ptr(), x.data_ptr())
        self.assertRaises(TypeError, x.reshape, "6")
        self.assertRaises(TypeError, x.reshape, 2, 3.5)

    def test_integers_are_exact(self):
        large = 2**62 + 1
        x = braid.tensor([[large, -large]])
        self.assertEqual((x.dtype, x.tolist()), (braid.int64, [[large, -large]]))
        self.assertEqual((x[0, 0].item(), int(x[0, 1])), (large, -large))
        odd = 2**53 + 1
        for got, expected in [(x + odd, [[large + odd, -large + odd]]), (odd - x[:, :1], [[odd - large]]),
                              (x == large, [[1, 0]]), (x > large - 1, [[1, 0]]), (x // large, [[1, -1]]),
                              (x ^ large, [[0, -large ^ large]]), (braid.tensor([1.0]) + large, [2.0**62])]:
            self.assertEqual(got.tolist(), expected)
        x[0, 1] = large
        self.assertEqual(x.tolist(), [[large, large]])
        self.assertEqual(braid.tensor([True, False]).dtype, braid.uint8)
        self.assertEqual(braid.tensor([True, 2]).dtype, braid.int64)
        self.assertEqual(braid.tensor([]).dtype, braid.float32)
        self.assertEqual(braid.zeros((2, 0, 3)).tolist(), [[], []])

    def test_iteration_length_and_text(self):
        x = braid.tensor([[1, 2], [3, 4]])
        self.assertEqual([row.tolist() for row in x], [[1, 2], [3, 4]])
        self.assertEqual(len(x), 2)
        self.assertIn("i64 (2, 2) on cpu", repr(x))
        self.assertRaises(braid.MisuseError, len, braid.tensor(3))

    def test_copies_and_pickles(self):
        for dtype in (braid.float64, braid.float32, braid.bfloat16, braid.float16, braid.int64, braid.int32,
                      braid.uint8):
            x = braid.tensor([[1, 2], [3, 4]], dtype=dtype)
            for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
                self.assertEqual((other.tolist(), other.dtype), (x.tolist(), dtype))
        x = braid.tensor([1.0]).requires_grad_()
        self.assertTrue(pickle.loads(pickle.dumps(x)).requires_grad)
        y = braid.transpose(braid.tensor([[1, 2], [3, 4]]))
        self.assertEqual(pickle.loads(pickle.dumps(y)).tolist(), [[1, 3], [2, 4]])


@unittest.skipIf(np is None, "NumPy is not installed")
class Indices(unittest.TestCase):
    def setUp(self):
        self.array = np.arange(60, dtype=np.float64).reshape(3, 4, 5)
        self.tensor = braid.asarray(self.array.copy())

    def test_reading(self):
        ids = [2, 0]
        for key in [1, -1, (0, 2), (slice(1), slice(None, None, 2)), (Ellipsis, 1), (None, 1), (slice(None), None, 2),
                    None, (slice(3, 0, -1),), (Ellipsis, slice(None, None, -1)), (1, Ellipsis, -2), (slice(None), ids),
                    (ids, slice(1, 3)), (ids, [1, 3]), (slice(None), slice(None), ids), self.array[:, 0, 0] > 10]:
            expected = self.array[key]
            got = self.tensor[key]
            self.assertEqual(got.shape, expected.shape, key)
            self.assertEqual(got.tolist(), expected.tolist(), key)
        mask = self.tensor > 30
        self.assertEqual(self.tensor[mask].tolist(), self.array[self.array > 30].tolist())

    def test_writing(self):
        for key, value in [(1, 7), ((0, 2), -1.5), ((slice(1, 3), Ellipsis, 0), 2), ((slice(None), [2, 0]), 9),
                           ((slice(None, None, -1), 0), [1, 2, 3, 4, 5]), ((Ellipsis, slice(1, 3)), 0)]:
            self.array[key] = value
            self.tensor[key] = value
            self.assertEqual(self.tensor.tolist(), self.array.tolist(), key)

    def test_what_is_no_index(self):
        for key in (3, (0, 0, 0, 0), "a", 1.5, True, (0, False), (Ellipsis, Ellipsis)):
            with self.assertRaises((braid.Error, TypeError), msg=str(key)):
                self.tensor[key]
        x = braid.arange(4)
        self.assertEqual((x[:2**70].tolist(), x[-2**70:1].tolist()), ([0, 1, 2, 3], [0]))
        for call in (lambda: x["a":], lambda: x.flip(2**32), lambda: braid.jacobian(lambda x: 3, braid.ones(2))):
            self.assertRaises(TypeError, call)


class Derivatives(unittest.TestCase):
    def test_backward_and_grad(self):
        x = braid.tensor([1.0, 2.0], dtype=braid.float64).requires_grad_()
        y = braid.sum(x * x * x)
        y.backward()
        self.assertEqual(x.grad.tolist(), [3, 12])
        x.grad = None
        self.assertIsNone(x.grad)
        (first,) = braid.grad(braid.sum(x ** 3), [x], create_graph=True)
        (second,) = braid.grad(braid.sum(first), [x])
        self.assertEqual(second.tolist(), [6, 12])
        other = braid.tensor([1.0]).requires_grad_()
        self.assertEqual(braid.grad(braid.sum(x), [x, other], allow_unused=True)[1], None)

    def test_derivatives_of_functions(self):
        x, v = braid.tensor([1.0, 2.0], dtype=braid.float64), braid.tensor([0.5, -1.0], dtype=braid.float64)
        cubes = lambda xs: xs[0] ** 3  # noqa: E731
        y, (dx,) = braid.vjp(cubes, [x], v)
        self.assertEqual((y.tolist(), dx.tolist()), ([1, 8], [1.5, -12]))
        y, (dx,) = braid.value_and_grad(lambda xs: cubes(xs).sum(), [x])
        self.assertEqual((y.item(), dx.tolist()), (9, [3, 12]))
        y, dy = braid.jvp(cubes, [x], [v])
        self.assertEqual((y.tolist(), dy.tolist()), ([1, 8], [1.5, -12]))
        self.assertEqual(braid.hvp(lambda xs: cubes(xs).sum(), [x], [v])[0].tolist(), [3, -12])
        self.assertEqual(braid.jacobian(lambda x: x ** 2, x).tolist(), [[2, 0], [0, 4]])
        self.assertEqual(braid.hessian(lambda x: braid.sum(x ** 3), x).tolist(), [[6, 0], [0, 12]])

    def test_a_freed_graph(self):
        x = braid.tensor([1.0]).requires_grad_()
        y = braid.sum(braid.exp(x))
        y.backward()
        with self.assertRaisesRegex(braid.MisuseError, "history already used"):
            y.backward()

    def test_recording_is_switched_off_and_on(self):
        x = braid.tensor([1.0]).requires_grad_()
        with braid.no_grad():
            self.assertFalse((x * 2).requires_grad)
            with braid.enable_grad():
                self.assertTrue((x * 2).requires_grad)
        self.assertTrue((x * 2).requires_grad)
        off = braid.no_grad()
        with off, off:
            self.assertFalse(braid.is_recording())
        self.assertTrue(braid.is_recording())

    def test_an_op_of_python(self):
        cube = braid.custom_op(lambda x: x * x * x, lambda dy, xs, y: [3 * xs[0] * xs[0] * dy], "cube")
        x = braid.tensor([0.3, -1.2], dtype=braid.float64)
        error, where = braid.gradcheck(lambda xs: braid.sum(cube(xs[0])), [x])
        self.assertLess(error, 1e-8, where)
        wrong = braid.custom_op(lambda x: x * x, lambda dy, xs, y: [dy])
        self.assertGreater(braid.gradcheck(lambda xs: wrong(xs[0]), [braid.tensor([3.0], dtype=braid.float64)])[0], 0.1)
        x = braid.tensor([1.0]).requires_grad_()
        with self.assertRaisesRegex(braid.MisuseError, "expected 1 gradients, one of each input, found 2"):
            braid.sum(braid.custom_op(lambda x: x * 2, lambda dy, xs, y: [dy, dy])(x)).backward()
        with self.assertRaisesRegex(braid.MisuseError, "expected a tensor, found float"):
            braid.custom_op(lambda x: 2.0, lambda dy, xs, y: [dy])(x)
        y = braid.custom_op(lambda x: x * 2, lambda dy, xs, y: [dy], "a name that is not kept in a string itself")(x)
        y.backward()
        with self.assertRaisesRegex(braid.MisuseError, r"^\[a name that is not kept in a string itself\] history"):
            y.backward()

    def test_an_exception_of_a_closure_comes_through(self):
        def fails(dy, xs, y):
            raise KeyError("here")

        x = braid.tensor([1.0]).requires_grad_()
        with self.assertRaisesRegex(KeyError, "here"):
            braid.sum(braid.custom_op(lambda x: x * 2, fails)(x)).backward()

    def test_hooks_and_taps(self):
        seen = []
        x = braid.tensor([2.0]).requires_grad_()
        handle = x.register_hook(lambda g: seen.append(g.tolist()))
        braid.sum(braid.tap(x * 3, lambda g: g * 10)).backward()
        handle.remove()
        braid.sum(x).backward()
        self.assertEqual((seen, x.grad.tolist()), ([[30.0]], [31.0]))

    def test_the_graph_as_a_picture(self):
        x = braid.tensor([1.0]).requires_grad_()
        self.assertTrue(braid.sum(braid.exp(x))._repr_svg_().startswith("<svg"))
        self.assertIsNone(x._repr_svg_())

    def test_threads_have_gradients_of_their_own(self):
        x = braid.ones((64, 64))
        x.requires_grad_()
        results = [None] * 8

        def work(i):
            results[i] = braid.grad(braid.sum(braid.matmul(x, x)) * float(i), [x])[0][0, 0].item()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [128.0 * i for i in range(8)])


class Errors(unittest.TestCase):
    def test_one_class_for_each_kind(self):
        kinds = [braid.SettingError, braid.InputError, braid.OutputError, braid.NumericalError, braid.ProcessError,
                 braid.NoCheckpointError, braid.MisuseError]
        self.assertEqual(len(set(kinds)), 7)
        for kind in kinds:
            self.assertTrue(issubclass(kind, braid.Error))
        with self.assertRaisesRegex(braid.MisuseError, r"\[matmul\]"):
            braid.matmul(braid.ones((2, 3)), braid.ones((2, 3)))
        with self.assertRaises(braid.MisuseError):
            braid.add(braid.ones((2,)), braid.ones((2,), braid.float64))
        with self.assertRaises(braid.SettingError):
            braid.nn.Optimizer({"x": braid.ones((1,)).requires_grad_()}, "adamm")
        with self.assertRaises(TypeError):
            braid.softmax("a")
        with self.assertRaises(TypeError):
            braid.linear(braid.ones(2), None)
        with self.assertRaises(TypeError):
            braid.l1_loss(braid.ones((2,)), braid.ones((2,)), reduction="max")


class Process(unittest.TestCase):
    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)

    def test_numpy_is_not_imported(self):
        got = self.run_python("import braid, sys; print('numpy' in sys.modules)")
        self.assertEqual((got.stdout.strip(), got.stderr, got.returncode), ("False", "", 0))

    def test_nothing_leaks_at_the_end(self):
        got = self.run_python("import braid\nx = braid.ones((3,)).requires_grad_()\ny = braid.sum(x * 2)\n"
                              "net = braid.nn.Linear(2, 2)\n"
                              "op = braid.custom_op(lambda x: x * 1, lambda dy, xs, y: [dy])\n"
                              "z = braid.sum(op(x))\nz.backward()\n"
                              "class M(braid.nn.Module):\n  def __init__(self):\n    super().__init__()\n"
                              "    self.l = net\n"
                              "m = M()")
        self.assertEqual((got.stdout, got.stderr, got.returncode), ("", "", 0))


if __name__ == "__main__":
    unittest.main()
