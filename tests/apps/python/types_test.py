#!/usr/bin/env python3
"""The types of the module: a program that mypy --strict accepts, and one mistake in each line of another."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import braid

RIGHT = '''
import braid

x = braid.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
y = braid.sum(braid.tanh(x @ x) * 2 + 1)
y.backward()
shape: tuple[int, ...] = x.reshape(2, -1).sum(0, keep=True).astype(braid.float64).shape
with braid.no_grad():
    z = x[0, :1] - 1.0


class Net(braid.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = braid.nn.Linear(2, 3, key=1)

    def __call__(self, x: braid.Tensor) -> braid.Tensor:
        return braid.relu(self.layer(x))


net = Net()
braid.nn.Optimizer(net, lr=1e-3).step()
square = braid.custom_op(lambda x: x * x, lambda dy, xs, y: [2 * xs[0] * dy])
run = braid.train("", {"train.steps": 3}, on_step=lambda row: print(row["loss"]))
model = run.model()
text: str = model.generate("the", 4)
texts: list[str] = model.generate(["the", "a"], 4)
for piece in model.stream("the"):
    text += piece
loss: float = model.score(text).loss
maps: list[braid.Tensor] = model.attention(text)
braid.heat_map(maps[0]).save("maps.svg")
try:
    braid.load("nowhere")
except braid.InputError as e:
    print(e)
'''
WRONG = ["braid.softmax('text')", "braid.tensor([1.0]).backwards()", "braid.load(3)", "braid.Run('a').curve(1)",
         "x: int = braid.load('a').generate('b')", "braid.train(on_step=3)", "braid.sum(braid.ones((2,)), keep_dim=1)",
         "braid.ones(2).reshape('2')", "braid.nn.Module().no_such = 3"]


@unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
class Types(unittest.TestCase):
    def mypy(self, text):
        """Its errors in the text itself, by line."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "example.py")
            pathlib.Path(path).write_text(text)
            got = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", path], text=True,
                                 capture_output=True, cwd=folder,
                                 env=os.environ | {"MYPYPATH": str(pathlib.Path(braid.__file__).parents[1])})
        lines = [line for line in got.stdout.splitlines() if line.startswith(path) or line.startswith("example.py")]
        return {int(line.split(":")[1]): line for line in lines if ": error:" in line}

    def test_a_right_program(self):
        self.assertEqual(self.mypy(RIGHT), {})

    def test_mistakes_are_found(self):
        found = self.mypy("import braid\n" + "\n".join(WRONG) + "\n")
        self.assertEqual(sorted(found), [2 + i for i in range(len(WRONG))], found)


if __name__ == "__main__":
    unittest.main()
