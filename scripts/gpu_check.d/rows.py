"""Rows: command lines that are run one after the other under a deadline, each surviving the failure of the one before.

What a row finds is written as JSON lines the moment it exists, so that a run that is cut off has lost nothing:
  {"part": "kernels", "row": "gemm", "value": {...}}                        a line that the program printed as JSON
  {"part": "kernels", "row": "gemm", "status": "ok", "seconds": 12.3}       the end of the row; not ok: with "tail"
"""
import ctypes
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
MAX_TEXT = 8 << 20  # characters of a row's output that are kept for its values, the last ones
GRACE = 2  # seconds between asking a program to end and ending it


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


class Ended(BaseException):
    """A signal has asked this program to end."""


def end_by_signals():
    """SIGTERM, SIGINT and SIGHUP end the row that runs, with a line that says so, and then this program."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def handler(number, frame):
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(signal.Signals(number).name)

    for number in numbers:
        signal.signal(number, handler)


class Results:
    """Appends JSON lines to a file, each with one write. A line for which the disk has no room is printed instead."""

    def __init__(self, path, say=print):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.path, self.say = path, say
        self.left_out, self.fault = 0, ""  # values beyond MAX_FILE; why a line was not written
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self.file).st_size
        self.torn = size > 0 and os.pread(self.file, 1, size - 1) != b"\n"  # a run was cut off within a line

    def add(self, **fields):
        text = json.dumps(fields)
        line = ("\n" if self.torn else "").encode() + text.encode() + b"\n"
        if "value" in fields and os.fstat(self.file).st_size + len(line) > MAX_FILE:
            self.left_out += 1
            return
        try:
            written = os.write(self.file, line)
        except OSError as error:
            written, self.fault = 0, error.strerror
        if written < len(line):
            self.fault = self.fault or "No space left on device"
            self.torn = self.torn or written > 0
            self.say(f"not written: {text}")
        else:
            self.torn = False

    def close(self):
        os.close(self.file)


C_LIBRARY = ctypes.CDLL(None)


def in_a_group(parent):
    """In a new process: a session of its own; the kernel ends it when this program is killed."""
    os.setsid()
    C_LIBRARY.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def end(process):
    """Ends a row's process and all that it started; they are a process group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            continue
    process.poll()  # one that a driver holds is left behind


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
        if len(rest) > MAX_TEXT:
            lines, rest = [*lines, rest], b""
        for line in lines:
            on_line(line.decode(errors="replace"))


class Runner:
    def __init__(self, part, results, deadline, environment, dry=False, say=print):
        self.part, self.results, self.deadline = part, results, deadline
        self.environment, self.dry, self.say = environment, dry, say
        self.failed, self.started = [], set()  # names of rows; dry commands

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
        text, size = [], 0

        def on_line(line):
            nonlocal size
            text.append(line)
            size += len(line) + 1
            while size > MAX_TEXT and len(text) > 1:
                size -= len(text.pop(0)) + 1
            if line.startswith("{") and not row.values:
                try:
                    self.value(row, json.loads(line))
                except ValueError:
                    pass  # an unfinished line of a program that was ended

        command = row.dry if self.dry and row.dry is not None else row.command
        code = 0
        if self.dry and command and tuple(command) in self.started:
            return self.finish(row, "ok", started, reason="the dry command of an earlier row")
        self.started.add(tuple(command))
        if command:
            parent = os.getpid()
            try:
                process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, env={**self.environment, **row.env}, preexec_fn=lambda: in_a_group(parent))
            except (OSError, subprocess.SubprocessError) as error:
                return self.finish(row, "failed", started, reason=f"{command[0]}: {getattr(error, 'strerror', None) or error}")
            deadline = started + min(row.limit, left)
            try:
                complete = stream(process, deadline, on_line)
                try:  # its output is closed: it ends at once, or it hangs
                    code = process.wait(timeout=max(0, deadline - time.monotonic())) if complete else 0
                except subprocess.TimeoutExpired:
                    complete = False
            except Ended as signal_:
                end(process)
                self.finish(row, "ended", started, reason=f"by {signal_}", tail="\n".join(text)[-TAIL:])
                raise
            finally:
                process.stdout.close()
                end(process)
            if not complete:
                return self.finish(row, "timeout", started, limit=min(row.limit, left), tail="\n".join(text)[-TAIL:])
        tail = "\n".join(text)[-TAIL:]
        try:
            for value in (row.values("\n".join(text)) if row.values else []) + (row.after() if row.after else []):
                self.value(row, value)
        except (ValueError, KeyError, IndexError, OSError) as error:
            if code in row.passed:
                return self.finish(row, "failed", started, reason=f"the output is not as expected: {error!r}", tail=tail)
        if code in row.passed:
            return self.finish(row, "ok", started)
        reason = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        return self.finish(row, "failed", started, reason=reason, tail=tail)
