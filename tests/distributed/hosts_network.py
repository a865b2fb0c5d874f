"""Hosts on one machine: network namespaces with host names of their own, and between them a switch that can lose,
delay and drop what one host sends to another. Needs root and /dev/net/tun; changes nothing outside its namespaces."""
import fcntl
import heapq
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def unavailable():
    """Why there can be no hosts here; None where there can."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists("/dev/net/tun"):
        return "needs /dev/net/tun"
    missing = [tool for tool in ("ip", "unshare", "setsid", "mpirun") if not shutil.which(tool)]
    if missing:
        return "needs " + ", ".join(missing)
    name = f"braid{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode == 0:
        made = subprocess.run(["ip", "netns", "exec", name, "unshare", "--uts", "true"], capture_output=True, text=True)
        subprocess.run(["ip", "netns", "del", name], check=True)
    return None if made.returncode == 0 else f"needs network namespaces ({made.stderr.strip()})"


class Host:
    """A namespace with one network device, whose other end is a descriptor of this process."""

    def __init__(self, number):
        self.number, self.name, self.address = number, f"host{number}", f"10.77.0.{number}"
        self.space = f"braid{os.getpid()}-{number}"
        device = f"b{os.getpid()}-{number}"
        self.mac = bytes([2, 0, 0, 0, 0, number])
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
        ip("netns", "add", self.space)
        self.inode = os.stat(f"/run/netns/{self.space}").st_ino
        ip("link", "set", device, "netns", self.space)
        ip("-n", self.space, "link", "set", device, "address", self.mac.hex(":"))
        ip("-n", self.space, "addr", "add", f"{self.address}/24", "dev", device)
        ip("-n", self.space, "link", "set", device, "up")
        ip("-n", self.space, "link", "set", "lo", "up")

    def command(self, arguments):
        """The same command on this host; the process keeps its id."""
        return ["ip", "netns", "exec", self.space, "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', self.name,
                *arguments]

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat(f"/proc/{pid}/ns/net").st_ino == self.inode and state(pid) != "Z":
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def signal(self, number, pids=None):
        for pid in self.processes() if pids is None else pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def end(self):
        """Ends every process of the host, also the stopped ones; those that were there."""
        there = left = self.processes()
        while left:
            self.signal(signal.SIGKILL, left)
            time.sleep(0.02)
            left = self.processes()
        return there


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def state(pid):
    """R, S, T, Z, ...; Z also for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


class Network:
    """Hosts on one switch. The faults are attributes: loss, the share of frames that are lost; delay, seconds; dropped,
    the pairs (from, to) of hosts between which nothing passes."""

    def __init__(self, count, seed=1):
        self.hosts, self.random = [], random.Random(seed)
        self.heal()
        self.wake, self.stop = os.pipe()
        self.thread = threading.Thread(target=self._forward, daemon=True)
        try:
            for number in range(1, count + 1):
                self.hosts.append(Host(number))
            self.thread.start()
        except BaseException:
            self.close()
            raise

    def heal(self):
        self.loss, self.delay, self.dropped = 0.0, 0.0, frozenset()

    def cut(self, host, ways=("to", "from")):
        others = [h for h in self.hosts if h is not host]
        self.dropped = frozenset([(o, host) for o in others if "to" in ways] + [(host, o) for o in others if "from" in ways])

    def _forward(self):
        by_tap = {host.tap: host for host in self.hosts}
        waiting, count = [], 0  # (when it is due, order, target, frame)
        while True:
            rest = max(0, waiting[0][0] - time.monotonic()) if waiting else None
            for tap in select.select([*by_tap, self.wake], [], [], rest)[0]:
                if tap == self.wake:
                    return
                source = by_tap[tap]
                for frame in iter(lambda: read(tap), None):
                    for target in self.hosts:
                        if target is source or not (frame[0] & 1 or frame[:6] == target.mac):
                            continue
                        if (source, target) in self.dropped or self.random.random() < self.loss:
                            continue
                        count += 1
                        heapq.heappush(waiting, (time.monotonic() + self.delay, count, target, frame))
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, target, frame = heapq.heappop(waiting)
                write(target.tap, frame)

    def close(self):
        os.write(self.stop, b"x")
        if self.thread.is_alive():
            self.thread.join()
        for host in self.hosts:
            host.end()
            os.close(host.tap)  # which removes the device
            subprocess.run(["ip", "netns", "del", host.space])
        os.close(self.wake)
        os.close(self.stop)


def read(tap):
    try:
        return os.read(tap, 65536)
    except BlockingIOError:
        return None


def write(tap, frame):
    try:
        os.write(tap, frame)
    except OSError:
        pass  # its queue is full: a switch drops the frame
