#!/usr/bin/env python3
"""Types of the module braid._braid for editors and mypy, by nanobind's generator.

usage: stubs.py FOLDER    where the package braid lies, with the module in it
"""
import pathlib
import sys
import tempfile

from nanobind import stubgen

folder = pathlib.Path(sys.argv[1])
sys.path[0] = str(folder)  # in the place of this script's folder
from braid import _braid  # noqa: E402

for name in dir(_braid):
    if name.endswith("Error"):  # whose tracebacks say braid.InputError: here they are of the module
        getattr(_braid, name).__module__ = "braid._braid"
package = folder / "braid"
with tempfile.NamedTemporaryFile("w") as patterns:
    patterns.write(r"braid\._braid\.nn\.Module\.__(set|del)attr__:" + "\n\n")  # they would allow any attribute
    patterns.flush()
    stubgen.main(["-q", "-m", "braid._braid", "-r", "-P", "-p", patterns.name, "-O", str(package),
                  "-M", str(package / "py.typed")])
