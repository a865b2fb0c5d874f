"""What a machine has: the GPU, the shared libraries that Braid's programs need, tools, a Python with torch."""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import time

# Libraries that are looked for on the machine, with the folders of toolkits and of torch's packages. A bundle has all others.
LIBRARIES = ("libcuda.so.1", "libcublasLt.so.13", "libcudart.so.13", "libcudnn.so.9", "libcusolver.so.12")
# Containers have the driver in folders of its own, which only their LD_LIBRARY_PATH and PATH may name.
DRIVER = ("/usr/local/nvidia", "/usr/lib/wsl")
TOOLS = ("nvidia-smi", "nvcc", "ncu", "compute-sanitizer")


def output_of(command, timeout=60, env=None):
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout if run.returncode == 0 else ""


def toolkit_folders():
    roots = sorted(glob.glob("/usr/local/cuda*") + glob.glob("/opt/cuda*") + glob.glob("/opt/nvidia/*"), reverse=True)
    return [path for path in [os.environ.get("CUDA_HOME", ""), *roots] if path and os.path.isdir(path)]


def pythons():
    """Every Python that may have torch: the one that runs this, those in PATH and in the usual places."""
    names = [sys.executable] + [shutil.which(name) or "" for name in ("python3", "python")]
    names += sorted(glob.glob("/opt/*/bin/python3") + glob.glob("/opt/*/*venv/bin/python3") + glob.glob("/usr/local/bin/python3") +
                    glob.glob("/*venv/bin/python3"))
    seen, found = set(), []
    for name in names:
        if name and os.path.isfile(name) and os.path.realpath(name) + name not in seen:
            seen.add(os.path.realpath(name) + name)
            found.append(name)
    return found


def torch_python(seconds=120):
    """(Python, its torch's version, CUDA and cuDNN), or None. A first import from a cold disk may take a minute."""
    end = time.monotonic() + seconds
    code = ("import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), "
            "torch.cuda.is_available(), sep='|')")
    for python in pythons():
        text = output_of([python, "-c", code], timeout=max(5, end - time.monotonic())).strip()
        if text.count("|") == 3:
            return python, dict(zip(("torch", "cuda", "cudnn", "gpu"), text.split("|")))
    return None


def package_folders():
    """lib folders of the nvidia packages that torch depends on."""
    code = "import site, sys; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()] + sys.path))"
    folders = []
    for python in pythons():
        for base in dict.fromkeys(output_of([python, "-c", code]).split("\n")):
            if base and os.path.isdir(base):
                folders += sorted(glob.glob(os.path.join(base, "nvidia", "*", "lib"))) + glob.glob(os.path.join(base, "torch", "lib"))
    return folders


def known_to_the_loader():
    """{name: path} of the shared libraries that the dynamic loader finds by itself."""
    text = output_of(["ldconfig", "-p"]) or output_of(["/sbin/ldconfig", "-p"])
    return {name: path for name, path in reversed(re.findall(r"^\s*(\S+) \(libc6,x86-64[^)]*\) => (\S+)", text, re.M))}


def cudnn_version(path):
    """The number that cuDNN gives itself, 0 when it cannot be loaded."""
    code = "import ctypes, sys; version = ctypes.CDLL(sys.argv[1]).cudnnGetVersion; version.restype = ctypes.c_size_t; print(version())"
    return int(output_of([sys.executable, "-c", code, path]) or 0)


def find_libraries(own):
    """(folders for LD_LIBRARY_PATH, {library: path or ""}): the machine's libraries; those in the folders of `own` come first, and of
    several cuDNN the newest: a system may have an older one than torch brings."""
    folders = [f for root in toolkit_folders() for f in (f"{root}/lib64", f"{root}/lib", f"{root}/targets/x86_64-linux/lib")]
    folders += [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
    folders += ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib", *(f"{root}/{lib}" for root in DRIVER for lib in ("lib64", "lib"))]
    folders += package_folders()
    known, found = known_to_the_loader(), {}
    for library in LIBRARIES:
        places = [os.path.join(f, library) for f in list(own) + folders if os.path.exists(os.path.join(f, library))]
        if library.startswith("libcudnn"):
            places = sorted(dict.fromkeys([*places, *filter(None, [known.get(library)])]), key=cudnn_version, reverse=True)
        found[library] = known.get(library) or next(iter(places), "") if library == "libcuda.so.1" else next(iter(places), known.get(library, ""))
    used = [os.path.dirname(path) for path in found.values() if path]
    return [f for f in dict.fromkeys(used) if f not in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")], found


def tools():
    folders = [f"{root}/bin" for root in toolkit_folders()] + [f"{root}/compute-sanitizer" for root in toolkit_folders()]
    folders += sorted(glob.glob("/opt/nvidia/nsight-compute/*"), reverse=True)
    path = ":".join(folders + [os.environ.get("PATH", ""), *(f"{root}/{end}" for root in DRIVER for end in ("bin", ""))])
    return {name: shutil.which(name, path=path) or "" for name in TOOLS}


def gpu(smi, fields="name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.draw,temperature.gpu"):
    """The first GPU's properties, {} without one."""
    text = output_of([smi, f"--query-gpu={fields}", "--format=csv,noheader"]) if smi else ""
    values = [value.strip() for value in text.split("\n")[0].split(",")]
    return dict(zip(fields.split(","), values)) if len(values) == len(fields.split(",")) else {}


def description():
    return {"python": platform.python_version(), "libc": " ".join(platform.libc_ver()), "processor": platform.machine(),
            "cpus": os.cpu_count(), "kernel": platform.release()}


def clean_environment(libraries, extra=None):
    """Only what programs need: nothing of the shell that starts them changes a result."""
    keep = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HOME", "TMPDIR", "TRITON_CACHE_DIR", "LANG")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    environment.setdefault("HOME", "/tmp")
    environment["PATH"] = ":".join(dict.fromkeys([f"{r}/bin" for r in toolkit_folders()] + ["/usr/local/bin", "/usr/bin", "/bin"]))
    if libraries:
        environment["LD_LIBRARY_PATH"] = ":".join(libraries)
    return {**environment, **(extra or {})}


def python_environment():
    """What a Python with torch is given in place of the libraries of Braid's programs: the shell's own."""
    return {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
