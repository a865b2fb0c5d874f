"""The command `braid` of the wheel: the program that lies in the package."""
import os
import pathlib
import sys


def main():
    program = str(pathlib.Path(__file__).parent / "bin" / "braid")
    os.execv(program, ["braid", *sys.argv[1:]])
