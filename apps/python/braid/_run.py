"""Training runs and studies: folders with logs, settings and checkpoints."""
import csv
import json
import os
import pathlib
import tomllib

from braid import _braid
from braid._chart import plot


class Run:
    """The folder of a training run, also while it trains.

        run = braid.Run("out/demo")
        run.log["loss"], run.curve("val_loss"), run.config["train"]["steps"]
        run.model().generate("The fox")

    In a notebook it shows itself as a chart."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not (self.folder / "config.resolved.toml").is_file():
            raise _braid.InputError(f"{folder} is no run folder: expected config.resolved.toml in it, found none")

    @property
    def config(self):
        """Its settings, by section."""
        return tomllib.loads((self.folder / "config.resolved.toml").read_text())

    @property
    def status(self):
        """status.json: the state and who trains it."""
        return json.loads((self.folder / "status.json").read_text())

    @property
    def log(self):
        """The columns of its log by name, a value of each step, None where it was not measured."""
        return _braid._log(str(self.folder))

    def curve(self, column):
        """(steps, values) of the steps that have a value in the column."""
        log = self.log
        points = [(x, y) for x, y in zip(log.get("step", []), log.get(column, [])) if y is not None]
        return [x for x, _ in points], [y for _, y in points]

    def model(self, which="", **options):
        """The model of its newest checkpoint, or of "best": braid.load()."""
        return _braid.load(str(self.folder / which), **options)

    def _repr_svg_(self):
        return plot(self).svg

    def __repr__(self):
        steps = self.log.get("step", [])
        return f"braid.Run({str(self.folder)!r}), {steps[-1] if steps else 0} steps"


class Study:
    """The tables of a study's report, by name: study["differences"]["mean"]."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not (self.folder / "report").is_dir():
            raise _braid.InputError(f"{folder} has no report: expected one of `braid study STUDY.toml`, found none")

    def tables(self):
        """The names of its tables."""
        return sorted(path.stem for path in (self.folder / "report").glob("*.csv"))

    def __getitem__(self, name):
        """The columns of a table by name: numbers where all of a column are numbers, else texts."""
        try:
            with open(self.folder / "report" / f"{name}.csv", newline="") as file:
                head, *rows = csv.reader(file)
        except FileNotFoundError:
            raise KeyError(f"{name}: expected one of {', '.join(self.tables())}") from None
        return {title: _numbers([row[i] for row in rows]) for i, title in enumerate(head)}


def _numbers(texts):
    try:
        return [float(text) if text else None for text in texts]
    except ValueError:
        return texts


def _toml(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(entry) if not isinstance(entry, str) else json.dumps(entry) for entry in value) + "]"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def train(config="", settings=None, on_step=None):
    """Trains the run of a settings file, or resumes it, as `braid train` does, and returns it.

    config: a TOML file, the folder of a run, or "" for the defaults. settings: what is different, by name.
    on_step: gets the row of the log after each step as a dict; where it returns False or raises, the state is saved
    and the run ends, and so it does by Ctrl-C, which raises KeyboardInterrupt. The same call resumes it.

        run = braid.train("configs/demo.toml", {"train.steps": 200, "run.out": "out/short"},
                          on_step=lambda row: print(row["step"], row["loss"]))
    """
    overrides = [f"{name}={_toml(value)}" for name, value in (settings or {}).items()]
    return Run(_braid._train(os.fspath(config), overrides, on_step))
