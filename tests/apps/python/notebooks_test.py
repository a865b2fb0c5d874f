#!/usr/bin/env python3
"""Executes the notebooks of apps/python/notebooks in the kernel of this interpreter: no cell may raise."""
import pathlib
import sys
import unittest

try:
    import nbclient
    import nbformat
    from jupyter_client.manager import KernelManager
except ImportError:
    nbclient = None

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "apps" / "python" / "notebooks"


@unittest.skipIf(nbclient is None, "nbclient is not installed")
class Notebooks(unittest.TestCase):
    def test_every_cell_runs(self):
        paths = sorted(FOLDER.glob("*.ipynb"))
        self.assertEqual(len(paths), 5)
        for path in paths:
            with self.subTest(path.name):
                notebook = nbformat.read(path, 4)
                manager = KernelManager()
                manager.kernel_spec.argv[0] = sys.executable
                nbclient.NotebookClient(notebook, km=manager, timeout=300).execute()
                errors = [out for cell in notebook.cells for out in cell.get("outputs", []) if out.output_type == "error"]
                self.assertEqual(errors, [])


if __name__ == "__main__":
    unittest.main()
