"""Rows: command lines that are run one after the other under a deadline, each surviving the failure of the one before.

What a row finds is written as JSON lines the moment it exists, so that a run that is cut off has lost nothing:
  {"part": "kernels", "row": "gemm", "value": {...}}                        a line that the program printed as JSON
  {"part": "kernels", "row": "gemm", "status": "ok", "seconds": 12.3}       the end of the row; not ok: with "tail"
"""
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import time
from typing import Callable, Optional

TAIL = 1500  # characters of the last output that a failed row keeps
MAX_FILE = 1 << 20  # bytes of one results file; values beyond it are counted, not kept


@dataclasses.dataclass
class Row:
    name: str
    command: list  # argv; the first element is a path
    limit: float = 120  # seconds
    env: dict = dataclasses.field(default_factory=dict)
    passed: tuple = (0,)  # exit codes
    values: Optional[Callable[[str], list]] = None  # the output of a program that prints no JSON -> values
    dry: Optional[list] = None  # the command for --dry; None: the same one
    needs: str = ""  # why the row cannot run here; "" when it can
    after: Optional[Callable[[], list]] = None  # values that exist once the command has ended

    def __post_init__(self):
        assert self.command or self.after, self.name


class Results:
    """Appends JSON lines to a file, each with one write."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.path, self.left_out = path, 0
        self.file = open(path, "a", encoding="utf-8")

    def add(self, **fields):
        line = json.dumps(fields) + "\n"
        if "value" in fields and self.file.tell() + len(line) > MAX_FILE:
            self.left_out += 1
            return
        self.file.write(line)
        self.file.flush()

    def close(self):
        self.file.close()


def end(process):
    """Ends a row's process and all that it started; they are a process group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=5)
            return
        except subprocess.TimeoutExpired:
            continue


def stream(process, deadline, on_line):
    """Reads lines until the process closes its output; returns False when the deadline comes first."""
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    rest = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        if not selector.select(left):
            continue
        chunk = os.read(process.stdout.fileno(), 1 << 16)
        if not chunk:
            if rest:
                on_line(rest.decode(errors="replace"))
            return True
        rest += chunk
        *lines, rest = rest.split(b"\n")
        for line in lines:
            on_line(line.decode(errors="replace"))


class Runner:
    def __init__(self, part, results, deadline, environment, dry=False, say=print):
        self.part, self.results, self.deadline = part, results, deadline
        self.environment, self.dry, self.say = environment, dry, say
        self.failed = []

    def finish(self, row, status, started, **more):
        seconds = round(time.monotonic() - started, 2)
        self.results.add(part=self.part, row=row.name, status=status, seconds=seconds, **more)
        self.say(f"{self.part}: {row.name}: {status} ({seconds} s)" + (f": {more['reason']}" if "reason" in more else ""))
        if status not in ("ok", "left out"):
            self.failed.append(row.name)

    def value(self, row, value):
        self.results.add(part=self.part, row=row.name, value=value)

    def run(self, row):
        started = time.monotonic()
        left = self.deadline - started
        if row.needs and not (self.dry and row.dry):
            return self.finish(row, "left out", started, reason=row.needs)
        if left < min(5, row.limit):
            return self.finish(row, "not run", started, reason="no time left in this part")
        text = []

        def on_line(line):
            text.append(line)
            if line.startswith("{") and not row.values:
                try:
                    self.value(row, json.loads(line))
                except ValueError:
                    pass  # an unfinished line of a program that was ended

        command = row.dry if self.dry and row.dry is not None else row.command
        code = 0
        if command:
            environment = {**self.environment, **row.env}
            try:
                process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            except OSError as error:
                return self.finish(row, "failed", started, reason=f"{command[0]}: {error.strerror}")
            complete = stream(process, started + min(row.limit, left), on_line)
            if not complete:
                end(process)
                return self.finish(row, "timeout", started, limit=min(row.limit, left), tail="\n".join(text)[-TAIL:])
            code = process.wait()
        tail = "\n".join(text)[-TAIL:]
        try:
            for value in (row.values("\n".join(text)) if row.values else []) + (row.after() if row.after else []):
                self.value(row, value)
        except (ValueError, KeyError, IndexError, OSError) as error:
            if code in row.passed:
                return self.finish(row, "failed", started, reason=f"the output is not as expected: {error!r}", tail=tail)
        if code in row.passed:
            return self.finish(row, "ok", started)
        return self.finish(row, "failed", started, reason=f"exit code {code}", tail=tail)
