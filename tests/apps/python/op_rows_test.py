#!/usr/bin/env python3
"""Every row of the op table called from Python: the values against the row's formula, the derivative against finite
differences. Standard library alone.

usage: BRAID_OP_ROWS=<the program op_rows> op_rows_test.py
"""
import array
import json
import os
import subprocess
import unittest

import braid
from op_expressions import EXPRESSIONS, LAPACK


def tensor_of(entry):
    x = braid.reshape(braid.asarray(array.array("d", entry["values"])), entry["shape"])
    return x.to(braid.int64) if entry["ids"] else x


def call_of(row):
    name, _, suffix = row.partition(":")
    if name == "einsum":  # whose suffix is its first argument
        return lambda *xs: braid.einsum(suffix, xs)
    table = EXPRESSIONS | LAPACK
    return table.get(row) or table.get(row.removesuffix(":extreme")) or getattr(braid, name)


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lines = subprocess.run([os.environ["BRAID_OP_ROWS"]], capture_output=True, check=True, text=True).stdout
        cls.cases = [json.loads(line) for line in lines.splitlines()]
        cls.rows = {case["row"] for case in cls.cases}

    def test_an_expression_has_a_row(self):
        self.assertEqual(set(EXPRESSIONS) - self.rows, set())
        if "solve" in self.rows:
            self.assertEqual(set(LAPACK) - self.rows, set())

    def test_values(self):
        for case in self.cases:
            result, row = case["result"], case["row"]
            with self.subTest(row=row, shapes=[x["shape"] for x in case["inputs"]]):
                y = call_of(row)(*map(tensor_of, case["inputs"]))
                self.assertEqual(list(y.shape), result["shape"])
                got = braid.reshape(y, -1).tolist() if y.size else []
                largest = max(map(abs, result["values"]), default=0)
                pairs = zip(got, result["values"], strict=True)
                self.assertEqual([(a, b) for a, b in pairs if not abs(a - b) <= 1e-12 * largest][:1], [])

    def test_derivatives(self):
        """Of the smallest case of each row."""
        size = lambda case: sum(len(x["values"]) for x in case["inputs"])  # noqa: E731
        smallest = {}
        for case in sorted(self.cases, key=size, reverse=True):
            if "gradient_tolerance" in case and case["result"]["values"]:
                smallest[case["row"]] = case
        self.assertGreater(len(smallest), 300)
        for row, case in smallest.items():
            with self.subTest(row=row):
                call = call_of(row)
                error, where = braid.gradcheck(lambda xs: call(*xs), [tensor_of(x) for x in case["inputs"]])
                self.assertLessEqual(error, case["gradient_tolerance"], where)


if __name__ == "__main__":
    unittest.main()
