"""Training runs and studies: folders with logs, settings and checkpoints."""
import csv
import json
import os
import pathlib
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from braid import _braid
from braid._chart import plot


class Run:
    """The folder of a training run, also while it trains.

        run = braid.Run("out/demo")
        run.log["loss"], run.curve("val_loss"), run.config["train"]["steps"]
        run.model().generate("The fox")

    In a notebook it shows itself as a chart."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = pathlib.Path(folder)
        if not (self.folder / "config.resolved.toml").is_file():
            raise _braid.InputError(f"{folder} is no run folder: expected config.resolved.toml in it, found none")

    @property
    def config(self) -> dict[str, Any]:
        """Its settings, by section."""
        return tomllib.loads((self.folder / "config.resolved.toml").read_text())

    @property
    def status(self) -> dict[str, Any]:
        """status.json: the state and who trains it."""
        status: dict[str, Any] = json.loads((self.folder / "status.json").read_text())
        return status

    @property
    def log(self) -> dict[str, list[Any]]:
        """The columns of its log by name, a value of each step, None where it was not measured."""
        return _braid._log(str(self.folder))

    def curve(self, column: str) -> tuple[list[int], list[float]]:
        """(steps, values) of the steps that have a value in the column."""
        log = self.log
        points = [(x, y) for x, y in zip(log.get("step", []), log.get(column, [])) if y is not None]
        return [x for x, _ in points], [y for _, y in points]

    def model(self, which: str = "", **options: Any) -> _braid.Model:
        """The model of its newest checkpoint, or of "best": braid.load()."""
        return _braid.load(self.folder / which, **options)

    def _repr_svg_(self) -> str:
        return plot(self).svg

    def __repr__(self) -> str:
        steps = self.log.get("step", [])
        return f"braid.Run({str(self.folder)!r}), {steps[-1] if steps else 0} steps"


class Study:
    """The tables of a study's report, by name: study["differences"]["mean"]."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = pathlib.Path(folder)
        if not (self.folder / "report").is_dir():
            raise _braid.InputError(f"{folder} has no report: expected one of `braid study STUDY.toml`, found none")

    def tables(self) -> list[str]:
        """The names of its tables."""
        return sorted(path.stem for path in (self.folder / "report").glob("*.csv"))

    def __getitem__(self, name: str) -> dict[str, list[Any]]:
        """The columns of a table by name: numbers where all of a column are numbers, else texts."""
        try:
            with open(self.folder / "report" / f"{name}.csv", newline="") as file:
                head, *rows = csv.reader(file)
        except FileNotFoundError:
            raise KeyError(f"{name}: expected one of {', '.join(self.tables())}") from None
        return {title: _numbers([row[i] for row in rows]) for i, title in enumerate(head)}


def _numbers(texts: list[str]) -> list[Any]:
    try:
        return [float(text) if text else None for text in texts]
    except ValueError:
        return texts


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(json.dumps(entry) if isinstance(entry, str) else _toml(entry) for entry in value) + "]"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def train(
    config: str | os.PathLike[str] = "",
    settings: Mapping[str, Any] | None = None,
    on_step: Callable[[dict[str, Any]], object] | None = None,
) -> Run:
    """Trains the run of a settings file, or resumes it, as `braid train` does, and returns it.

    config: a TOML file, the folder of a run, or "" for the defaults. settings: what is different, by name.
    on_step: gets the row of the log after each step as a dict; where it returns False or raises, the state is saved
    and the run ends, and so it does by Ctrl-C, which raises KeyboardInterrupt. The same call resumes it.

        run = braid.train("configs/demo.toml", {"train.steps": 200, "run.out": "out/short"},
                          on_step=lambda row: print(row["step"], row["loss"]))
    """
    overrides = [f"{name}={_toml(value)}" for name, value in (settings or {}).items()]
    return Run(_braid._train(os.fspath(config), overrides, on_step))
