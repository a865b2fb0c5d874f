#!/usr/bin/env python3
"""Memory that tensors of Python share with other libraries, those of NumPy, PyTorch and JAX that are installed."""
import ctypes
import gc
import unittest

import braid

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None
try:
    import jax.numpy as jnp
except ImportError:
    jnp = None


class Memory(unittest.TestCase):
    @unittest.skipIf(np is None, "NumPy is not installed")
    def test_numpy_shares_memory_both_ways(self):
        for dtype in (np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8):
            array = np.arange(12, dtype=dtype).reshape(3, 4)
            x = braid.asarray(array)
            array[1, 2] = 50
            self.assertEqual(x[1, 2].item(), 50)
            back = np.asarray(x)
            self.assertEqual(back.dtype, array.dtype)
            back[0, 0] = 9
            self.assertEqual(array[0, 0], 9)
            self.assertTrue(np.shares_memory(np.from_dlpack(x), array))
        strided = np.arange(12.0).reshape(3, 4)[:, ::2].T
        self.assertEqual(braid.asarray(strided).tolist(), strided.tolist())
        self.assertEqual(np.asarray(braid.transpose(braid.asarray(np.arange(6.0).reshape(2, 3)))).tolist(),
                         np.arange(6.0).reshape(2, 3).T.tolist())

    @unittest.skipIf(np is None, "NumPy is not installed")
    def test_memory_lives_as_long_as_the_last_user(self):
        x = braid.asarray(np.full(1000, 3.0))
        gc.collect()
        self.assertEqual(braid.sum(x).item(), 3000)
        array = np.asarray(braid.full_like(x, 2))
        gc.collect()
        self.assertEqual(array.sum(), 2000)

    def test_a_buffer_of_what_numpy_does_not_know(self):
        with self.assertRaisesRegex(BufferError, "bf16: use x.to"):
            memoryview(braid.tensor([1.0], dtype=braid.bfloat16))
        if np is not None:  # and no array of objects, one for each element
            with self.assertRaisesRegex(BufferError, "bf16: use x.to"):
                np.asarray(braid.tensor([1.0], dtype=braid.bfloat16))
            x = braid.tensor([1.0, 2.0])
            self.assertEqual(np.asarray(x, dtype=np.int32).tolist(), [1, 2])
            self.assertTrue(np.shares_memory(x.__array__(), np.asarray(x)))
        with self.assertRaisesRegex(TypeError, "read"):
            memoryview(braid.tensor([1.0]).requires_grad_())[0] = 2.0

    @unittest.skipIf(np is None, "NumPy is not installed")
    def test_memory_for_reading_is_lent_for_reading(self):
        array = np.arange(3.0)
        array.flags.writeable = False
        self.assertFalse(np.asarray(braid.asarray(array)).flags.writeable)
        self.assertFalse(np.from_dlpack(braid.asarray(array)).flags.writeable)
        self.assertTrue(np.asarray(braid.tensor(array)).flags.writeable)

    def test_a_buffer_in_order_is_asked_of_a_contiguous_tensor(self):
        get, view = ctypes.pythonapi.PyObject_GetBuffer, ctypes.create_string_buffer(256)
        c, fortran, any_order = 0x38, 0x58, 0x98  # PyBUF_C_CONTIGUOUS, ...
        x = braid.arange(12).reshape(3, 4)
        for tensor, flags in ((x, c), (x.T, fortran), (x, any_order), (x.T, any_order)):
            get(ctypes.py_object(tensor), view, flags)
            ctypes.pythonapi.PyBuffer_Release(view)
        for tensor, flags in ((x.T, c), (x, fortran), (x[:, :2], any_order), (x.T, 0)):
            with self.assertRaisesRegex(BufferError, "expected a contiguous tensor"):
                get(ctypes.py_object(tensor), view, flags)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_shares_memory_both_ways(self):
        for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32,
                      torch.uint8):
            source = torch.arange(6).reshape(2, 3).to(dtype)
            x = braid.from_dlpack(source)
            source[1, 1] = 40
            self.assertEqual(x[1, 1].item(), 40)
            back = torch.from_dlpack(x)
            self.assertEqual((back.dtype, back.tolist()), (dtype, source.tolist()))
            self.assertEqual(back.data_ptr(), source.data_ptr())

    @unittest.skipIf(jnp is None, "JAX is not installed")
    def test_arrays_of_jax_are_for_reading(self):
        for name in ("float32", "bfloat16", "float16", "int32", "uint8"):
            source = jnp.arange(6).reshape(2, 3).astype(name)
            x = braid.from_dlpack(source)
            self.assertEqual((x.tolist(), x.dtype), (source.tolist(), getattr(braid, name)))
            with self.assertRaisesRegex(braid.MisuseError, "read"):
                x[0, 0] = 9
            back = jnp.from_dlpack(x.clone())
            self.assertEqual((str(back.dtype), back.tolist()), (name, source.tolist()))
            gc.collect()
        self.assertEqual(source.tolist(), [[0, 1, 2], [3, 4, 5]])


if __name__ == "__main__":
    unittest.main()
