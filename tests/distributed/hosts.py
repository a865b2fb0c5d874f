#!/usr/bin/env python3
"""Jobs of braid train over several hosts, which are network namespaces of this machine (hosts_network.py), while links
and hosts fail. Usage: hosts.py BRAID [--only TEXT]    (the trials whose row has it)

Each fault falls between two saves and into one (step-*.tmp exists). Every rank that can run must end within
parallel.timeout + 2 s, with a code of apps/README.md, and name ranks behind the fault with their host; no finished
checkpoint may change; no process may stay; the run must resume on the hosts that are left and, at the same layout, to
the bytes of an undisturbed run. A slow network must end nothing. One row per trial. Exit code 77: no hosts here."""
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hosts_network import Network, state, unavailable

MPI_JOB = str(Path(__file__).resolve().parents[2] / "scripts" / "mpi_job")
TIMEOUT = 5  # parallel.timeout, seconds
BUSY = 5 if os.getloadavg()[0] > os.cpu_count() else 0  # seconds more for a machine with other work
STEPS, INTERVAL = 18, 6
SETTINGS = (f"train.steps={STEPS} checkpoint.interval={INTERVAL} checkpoint.keep=100 model.dim=48 model.n_layer=2 "
            "model.n_head=4 model.block_size=32 train.batch_size=4 schedule.warmup=2 eval.interval=0 log.interval=1 "
            "guard.spike=0 train.dtype=f64 run.threads=1").split()

# Hosts, ranks on each, the order in which the hosts get them, settings; settings for the ranks of one host less.
# Neighbouring ranks form a tensor group: the order "node" puts it across the hosts.
LAYOUTS = {
    "data": (2, 2, "slot", ["parallel.data=2", "parallel.tensor=2"], ["parallel.data=2"]),
    "tensor": (2, 2, "node", ["parallel.data=2", "parallel.tensor=2"], ["parallel.tensor=2"]),
    "async": (2, 2, "slot", ["parallel.data=2", "parallel.tensor=2", "checkpoint.async=true"], ["parallel.data=2"]),
    "3 hosts": (3, 1, "slot", ["parallel.data=3"], ["parallel.data=2"]),
}
FAULTS = {
    "link cut": lambda network, host, pids: network.cut(host),
    "half-open, not heard": lambda network, host, pids: network.cut(host, ["from"]),
    "half-open, deaf": lambda network, host, pids: network.cut(host, ["to"]),
    "frozen": lambda network, host, pids: host.signal(signal.SIGSTOP, pids),
    "gone": lambda network, host, pids: host.signal(signal.SIGKILL, pids),
}
SLOW = {"20 % loss": (0.2, 0.0, 60), "200 ms delay": (0.0, 0.2, TIMEOUT), "loss and delay": (0.2, 0.2, 60)}
MOMENTS = ("between", "in a save")
COLUMNS = (("fault", 28), ("when", 9), ("layout", 7), ("codes of the ranks", 18), ("s", 4), ("launcher", 24),
           ("named", 31), ("resumed at", 10), ("verdict", 0))


class Failed(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


def wait_until(condition, seconds, pause=0.02):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            return False
        time.sleep(pause)
    return True


def read(path):
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def steps(run):
    return max(0, len(read(run / "log.csv").splitlines()) - 1)


def finished(run):
    return sorted(p.name for p in run.glob("step-*") if not p.name.endswith(".tmp"))


def saving(run):
    return any(run.glob("step-*.tmp"))


def contents(step):
    return {str(p.relative_to(step)): p.read_bytes() for p in step.rglob("*.safetensors")}


class Job:
    """A command on a host. Its ranks leave their exit codes and outputs beside the run folder."""

    def __init__(self, run, command, environment):
        self.run, self.text = run, Path(f"{run}.txt")
        for old in run.parent.glob(f"{run.name}.code.*"):
            old.unlink()
        shutil.rmtree(f"{run}.ranks", ignore_errors=True)
        with open(self.text, "w") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
                                            start_new_session=True)

    def output(self):
        return read(self.text)

    def output_of_ranks(self):
        return "".join(read(p) for p in sorted(Path(f"{self.run}.ranks").rglob("stderr")))

    def wait(self, seconds):
        """The exit code; None when it has not ended."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def code(self, rank):
        return read(Path(f"{self.run}.code.{rank}")).strip() or "-"


class World:
    """What the trials share: the network, a folder with the data, and an undisturbed run of each layout."""

    def __init__(self, braid, folder, network):
        self.braid, self.folder, self.network = os.path.realpath(braid), folder, network
        self.runs, self.whole, self.random = 0, {}, random.Random(1)
        (folder / "in").mkdir()
        for i in range(30):
            (folder / "in" / f"{i}.txt").write_text(" ".join(str(self.random.randrange(100)) for _ in range(100)))
        subprocess.run([self.braid, "prepare", folder / "in", "--val-fraction", "0.2", "-o", folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        cases = "".join(f"{h.address}) space={h.space} name={h.name} ;;\n" for h in network.hosts)
        # In place of ssh: options, an address, a command. A client of its own, which outlives its host.
        self.agent = self.script("agent", f"""while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in
{cases}esac
shift
setsid --wait ip netns exec $space unshare --uts sh -c "hostname $name; exec $*"
code=$?
[ $code -lt 128 ] || code=255
exit $code
""")
        # A rank, whose exit code is kept; signals go to the whole process group, so also to the rank.
        self.rank = self.script("rank", """trap : TERM INT USR1
file=$1.$OMPI_COMM_WORLD_RANK
shift
"$@"
code=$?
echo $code >$file
exit $code
""")
        self.environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "PMIX_MCA_gds": "hash", "MPI_JOB_GRACE": "3", "CUDA_VISIBLE_DEVICES": ""}

    def script(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return str(path)

    def fresh(self):
        self.runs += 1
        return self.folder / f"run-{self.runs}"

    def start(self, run, hosts, ranks, order, settings, launcher="mpi_job", timeout=TIMEOUT):
        subnet = hosts[0].address.rsplit(".", 1)[0] + ".0/24"
        mpirun = ["mpirun", "--oversubscribe", "--mca", "plm_rsh_agent", self.agent, "--mca", "btl", "tcp,self,vader",
                  "--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet, "--map-by", order,
                  "--output-filename", f"{run}.ranks", "--host", ",".join(f"{h.address}:{ranks}" for h in hosts),
                  "-np", str(len(hosts) * ranks)]
        train = [self.rank, f"{run}.code", self.braid, "train", f"run.out={run}", f"data.path={self.folder / 'data'}",
                 f"parallel.timeout={timeout}", *SETTINGS, *settings]
        front = [MPI_JOB, str(run)] if launcher == "mpi_job" else []
        return Job(run, hosts[0].command([*front, *mpirun, *train]), self.environment)

    def undisturbed(self, layout):
        """The files of each checkpoint."""
        if layout not in self.whole:
            count, ranks, order, settings, _ = LAYOUTS[layout]
            run = self.fresh()
            job = self.start(run, self.network.hosts[:count], ranks, order, settings)
            expect(job.wait(180) == 0, "an undisturbed run failed:\n" + job.output())
            self.whole[layout] = {step: contents(run / step) for step in finished(run)}
            expect(len(self.whole[layout]) == STEPS // INTERVAL, f"checkpoints: {finished(run)}")
        return self.whole[layout]

    def clean(self, job):
        """Ends what a fault left."""
        self.network.heal()
        for host in self.network.hosts:
            host.end()
        job.wait(20)


def ranks_on(host, braid):
    """{process: rank} of a host."""
    found = {}
    for pid in host.processes():
        try:
            if os.readlink(f"/proc/{pid}/exe") == braid:
                found[pid] = int(re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)\0", Path(f"/proc/{pid}/environ").read_bytes())[1])
        except OSError:
            pass
    return found


class Trial:
    """A job at the moment when the fault falls."""

    def __init__(self, world, layout, when, launcher="mpi_job", timeout=TIMEOUT):
        count, self.ranks, self.order, self.settings, self.smaller = LAYOUTS[layout]
        self.world, self.when, self.hosts = world, when, world.network.hosts[:count]
        self.whole = world.undisturbed(layout)
        self.run = world.fresh()
        self.job = world.start(self.run, self.hosts, self.ranks, self.order, self.settings, launcher, timeout)
        reached = lambda: len(finished(self.run)) > 0 and steps(self.run) > INTERVAL  # noqa: E731
        expect(wait_until(lambda: reached() or self.job.process.poll() is not None, 180) and reached(),
               "the job did not reach its first checkpoint:\n" + self.job.output())
        self.processes = {h: h.processes() for h in self.hosts}
        self.members = {h: ranks_on(h, world.braid) for h in self.hosts}
        expect(all(len(m) == self.ranks for m in self.members.values()), f"processes of ranks: {self.members}")
        if when == "in a save":
            expect(wait_until(lambda: saving(self.run), 60, 0.0005), "no save came")
            time.sleep(world.random.uniform(0, 0.05))

    def fell_right(self):
        """Whether the fault fell where it should; finished: the checkpoints that must not be lost."""
        self.start, self.finished = time.time(), finished(self.run)
        return saving(self.run) == (self.when == "in a save") and len(self.finished) < STEPS // INTERVAL

    def since(self):
        return f"{time.time() - self.start:.1f}"

    def resume(self, run, hosts, settings, order="slot"):
        """The step from which the same command continued."""
        job = self.world.start(run, hosts, self.ranks, order, settings)
        code = job.wait(180)
        found = re.search(r"resuming from \S*step-0*(\d+)", job.output())
        expect(code == 0 and found, f"resuming with {settings} on {len(hosts)} hosts: code {code}\n{job.output()}")
        expect(int(found[1]) >= int(self.finished[-1][5:]), f"resumed at {found[1]}, expected {self.finished[-1]}")
        expect(finished(run)[-1] == f"step-{STEPS:08d}" and not saving(run), f"left: {os.listdir(run)}")
        return found[1]


def check_names(output, victim, half_open):
    """The ranks that messages name. A host on the right side of the fault accuses ranks of the victim alone."""
    named = set()
    for text, found_by in re.findall(r"((?:rank \d+ on host \w+(?:, )?)+) did not answer .* detected by rank \d+ on host "
                                     r"(\w+)", output):
        ranks = re.findall(r"rank (\d+) on host (\w+)", text)
        named.update(f"{rank}@{host}" for rank, host in ranks)
        expect(all((host == victim.name) != (found_by == victim.name) for _, host in ranks),
               f"wrong ranks named: {text}, by {found_by}")
    expect(any(victim.name in name or half_open for name in named), f"no rank of {victim.name} named:\n{output}")
    return " ".join(sorted(named))


def fault_trial(world, row, fault, when, layout, number=-1, launcher="mpi_job"):
    """The fault meets one host, by its index; number 0: that of rank 0 and of mpirun."""
    for _ in range(5):
        trial = Trial(world, layout, when, launcher)
        victim = trial.hosts[number]
        FAULTS[fault](world.network, victim, trial.processes[victim])
        if trial.fell_right():
            break
        world.clean(trial.job)
    else:
        raise Failed("the fault never fell " + when)
    job, others = trial.job, [h for h in trial.hosts if h is not victim]
    runs = trial.hosts if fault not in ("frozen", "gone") else others
    able = [pid for h in runs for pid in trial.members[h]]
    expect(wait_until(lambda: all(state(pid) == "Z" for pid in able), 60), "ranks still run after 60 s")
    row["s"] = trial.since()
    there = number != 0 or fault not in ("frozen", "gone")  # the launcher
    code = job.wait(40 if launcher == "mpi_job" else 30) if there else None
    row["launcher"] = f"{launcher}: {code} after {trial.since()}" if code is not None else f"{launcher} on that host"
    if there and code is None:
        job.process.terminate()
        row["launcher"] = f"{launcher}: waits; TERM: {job.wait(20)}"
    row["codes of the ranks"] = " ".join(job.code(r) for r in range(len(trial.hosts) * trial.ranks))
    able_codes = {job.code(r) for h in runs for r in trial.members[h].values()}
    expect(float(row["s"]) < TIMEOUT + 2 + BUSY, f"the last rank ended after {row['s']} s")
    expect(able_codes <= {"6", "143", "137", "-"}, "codes of the ranks")  # - and 143: ended by mpirun after another
    if launcher == "mpi_job" and there:
        expect(code == 6, f"the launcher's code is {code}, expected 6:\n{job.output()}")
    if fault == "gone" and there:  # mpirun notices first, and ends the ranks
        seen = "host by Open MPI" if victim.address in job.output() else "no host"
        row["named"] = seen + (", all ranks" if launcher == "mpi_job" else "")
        ranks = sorted(trial.members[victim].values())
        expect(launcher != "mpi_job" or f"mpi_job: {victim.name}: ranks {ranks[0]}" in job.output(),
               "the launcher does not say which ranks were where:\n" + job.output())
    elif fault != "gone":
        row["named"] = check_names(job.output() if there else job.output_of_ranks(), victim, "half" in fault)
    lost = [s for s in trial.finished if not (trial.run / s).is_dir() or contents(trial.run / s) != trial.whole[s]]
    expect(not lost, f"lost or changed: {lost}")
    copy = world.fresh()
    shutil.copytree(trial.run, copy)
    world.network.heal()
    victim.end()
    expect(wait_until(lambda: not any(h.processes() for h in trial.hosts), 10),
           f"processes stay: {[h.processes() for h in trial.hosts]}")
    row["resumed at"] = trial.resume(copy, others, trial.smaller)
    row["resumed at"] += " " + trial.resume(trial.run, trial.hosts, trial.settings, trial.order)
    last = f"step-{STEPS:08d}"
    expect(contents(trial.run / last) == trial.whole[last], "other bytes than those of the undisturbed run")


def slow_trial(world, row, fault, when, layout):
    """A network that is slow for 15 s at least, until the job has made a step and ended its save; then it is well."""
    loss, delay, timeout = SLOW[fault]
    for _ in range(5):
        trial = Trial(world, layout, when, timeout=timeout)
        world.network.loss, world.network.delay = loss, delay
        if trial.fell_right():
            break
        world.clean(trial.job)
    else:
        raise Failed("the fault never fell " + when)
    job, first = trial.job, steps(trial.run)
    waited = lambda: time.time() > trial.start + 15 and steps(trial.run) > first and not saving(trial.run)  # noqa: E731
    expect(wait_until(lambda: waited() or job.process.poll() is not None, 240), "no step within 240 s")
    row["named"] = f"- ({steps(trial.run) - first} steps in {trial.since()} s)"
    world.network.heal()
    code = job.wait(240)
    row["s"], row["launcher"] = trial.since(), f"mpi_job: {code}"
    row["codes of the ranks"] = " ".join(job.code(r) for r in range(len(trial.hosts) * trial.ranks))
    expect(code == 0, "a slow network ended the job:\n" + job.output())
    expect({s: contents(trial.run / s) for s in finished(trial.run)} == trial.whole, "other bytes")


def trials():
    """(what the row says, the function, its arguments)"""
    for fault in FAULTS:
        for layout in ("data", "tensor"):
            for when in MOMENTS:
                yield (fault, when, layout), fault_trial, (fault, when, layout)
        yield (fault, "in a save", "async"), fault_trial, (fault, "in a save", "async")
    for fault in ("frozen", "gone"):
        for when in MOMENTS:
            yield (fault + ", host of rank 0", when, "data"), fault_trial, (fault, when, "data", 0)
    for fault in ("link cut", "frozen", "gone"):
        yield (fault, "in a save", "3 hosts"), fault_trial, (fault, "in a save", "3 hosts")
    for fault in FAULTS:
        yield (fault + ", mpirun", "between", "data"), fault_trial, (fault, "between", "data", -1, "mpirun")
    for layout in ("data", "tensor"):
        for fault in SLOW:
            for when in MOMENTS:
                yield (fault, when, layout), slow_trial, (fault, when, layout)


def show(row):
    lines = row["verdict"].splitlines()
    row["verdict"] = lines[0]
    print("  ".join(f"{row.get(name, ''):{width}}" for name, width in COLUMNS), *lines[1:], sep="\n    ", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("braid")
    parser.add_argument("--only", default="", help="the trials whose row has this text")
    options = parser.parse_args()
    reason = unavailable()
    if reason:
        print(f"left out: hosts that fail ({reason})")
        return 77
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    failed = count = 0
    with tempfile.TemporaryDirectory(prefix="braid-hosts-") as folder:
        network = Network(3)
        try:
            world = World(options.braid, Path(folder), network)
            show({**{name: name for name, _ in COLUMNS}})
            for (fault, when, layout), run, arguments in trials():
                if options.only not in f"{fault}  {when}  {layout}":
                    continue
                row, count = {"fault": fault, "when": when, "layout": layout, "verdict": "ok"}, count + 1
                try:
                    run(world, row, *arguments)
                except Failed as e:
                    row["verdict"], failed = "FAILED: " + str(e), failed + 1
                    network.heal()
                    for host in network.hosts:
                        host.end()
                show(row)
        finally:
            network.close()
    print(f"{count} trials, {failed} failed; parallel.timeout={TIMEOUT}, ranks may take {2 + BUSY} s more")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
