"""Bundles: programs for a GPU that is elsewhere, with all that they need but a driver, cuBLASLt and (optionally) cuDNN.

  DIR/gpu_check, DIR/gpu_check.d/    these scripts
  DIR/braid-gpu.tar.xz               bin/, lib/, glibc/, no-cudnn/, tests/bench/, tests/golden/, data/, manifest.json
"""
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile

import machine
import parts

ARCHIVE, LIMIT = "braid-gpu.tar.xz", 16 << 20
PROGRAMS = {"braid": "braid", "test_cuda_device": "tests/test_cuda_device", "bench_device": "tests/bench/bench_device",
            "bench_probe": "tests/bench/bench_probe"}
TARGETS = ["braid_program", "test_cuda_device", "bench_device", "bench_probe"]
# Found on the machine with the GPU; cudart is small and goes with the bundle.
ELSEWHERE = ("libcublasLt.so", "libcublas.so", "libcudnn", "libcuda.so", "libcusolver", "libcusparse", "libnvJitLink")
C_LIBRARY = ("ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2")


def run(command, **options):
    print("+", " ".join(str(word) for word in command), file=sys.stderr, flush=True)
    subprocess.run([str(word) for word in command], check=True, **options)


def build(root, folder, arch, cudnn, cusolver):
    """Portable programs: for any x86-64 processor, the library once and shared, no MPI, NCCL or oneDNN."""
    run(["cmake", "-S", root, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBRAID_CUDA=ON", f"-DBRAID_CUDA_ARCHITECTURES={arch}-real",
         f"-DBRAID_CUDNN={cudnn}", f"-DBRAID_CUSOLVER={cusolver}", "-DBRAID_NATIVE=OFF", "-DBRAID_DNNL=OFF", "-DBRAID_MPI=OFF", "-DBRAID_NCCL=OFF",
         "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_SKIP_RPATH=ON", "-DBRAID_FUZZ=OFF"], stdout=sys.stderr)
    run(["cmake", "--build", folder, "--target", *TARGETS], stdout=sys.stderr)


def needed(path):
    """The names of the shared libraries that a file needs itself."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout)


def undefined(path, prefix):
    text = subprocess.run(["nm", "-D", "--undefined-only", path], capture_output=True, text=True, check=True).stdout
    return sorted({name.split("@")[0] for name in text.split() if name.startswith(prefix)})


def newest_glibc(paths):
    versions = [(0, 0)]
    for path in paths:
        text = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        versions += [tuple(int(part) for part in found.split(".")) for found in re.findall(r"GLIBC_(\d+\.\d+)", text)]
    return max(versions)


def place_of(library, folders):
    for folder in folders:
        if os.path.exists(os.path.join(folder, library)):
            return os.path.join(folder, library)
    path = machine.known_to_the_loader().get(library)
    if not path:
        raise RuntimeError(f"{library} was not found: it is needed by the programs of the bundle")
    return path


def copy_libraries(start, folders, to):
    """Copies what the files in `start` need, and what that needs, but for the C library and what the other machine has."""
    queue, done = list(start), set()
    while queue:
        for library in needed(queue.pop()):
            if library in done or library in C_LIBRARY or library.startswith(ELSEWHERE) or library.startswith("ld-linux"):
                continue
            done.add(library)
            target = os.path.join(to, library)
            if not os.path.exists(target):
                shutil.copy(os.path.realpath(place_of(library, folders)), target)
                subprocess.run(["strip", "--strip-unneeded", target], check=True)
            queue.append(target)
    return sorted(done)


def stand_in_for_cudnn(files, to):
    """A libcudnn.so.9 of version 0 for machines without cuDNN: Braid then says so and takes its own kernels."""
    functions = sorted({name for path in files for name in undefined(path, "cudnn")})
    os.makedirs(to)
    if not functions:
        return
    source = os.path.join(to, "cudnn.c")
    with open(source, "w", encoding="utf-8") as file:
        for name in functions:
            result = {"cudnnGetVersion": "0", "cudnnGetErrorString": '(long)"there is no cuDNN"'}.get(name, "1001")  # not initialized
            file.write(f"long {name}(void) {{ return {result}; }}\n")
    run(["cc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libcudnn.so.9", "-o", os.path.join(to, "libcudnn.so.9"), source])
    os.remove(source)


def golden_losses(stage):
    """The losses of the CPU in f32, so that a machine with few cores need not compute them."""
    out = os.path.join(stage, "golden-run")
    environment = machine.clean_environment([os.path.join(stage, "lib")])
    braid = os.path.join(stage, "bin", "braid")
    run([braid, "train", os.path.join(stage, "data/demo.toml"), *parts.TRAINING, f"data.path={stage}/data/text", f"run.out={out}", "train.steps=200",
         "train.dtype=f32", "run.device=cpu"], env=environment, stdout=sys.stderr)
    values = parts.losses(out)
    shutil.rmtree(out)
    with open(os.path.join(stage, "data/losses.json"), "w", encoding="utf-8") as file:
        json.dump(values, file)


def make(root, folder, arch="90a", cudnn="AUTO", cusolver="OFF", build_folder="", losses=True, built=False):
    """built: packs the programs that the build folder has; without test_cuda_device the tests are those of the emulated GPU."""
    folder = os.path.abspath(folder)
    build_folder = os.path.abspath(build_folder or os.path.join(root, "build", "gpu-bundle"))
    if not built:
        build(root, build_folder, arch, cudnn, cusolver)
    stage = os.path.join(folder, "stage")
    shutil.rmtree(stage, ignore_errors=True)
    for name in ("bin", "lib", "glibc", "data", "tests/bench", "tests/golden"):
        os.makedirs(os.path.join(stage, name))
    for name, path in PROGRAMS.items():
        if built and not os.path.exists(os.path.join(build_folder, path)):
            path = path.replace("test_cuda_device", "test_cuda")
        shutil.copy(os.path.join(build_folder, path), os.path.join(stage, "bin", name))
    files = [os.path.join(stage, "bin", name) for name in PROGRAMS]
    for library in [name for name in needed(files[0]) if name.startswith("libbraid.so")]:  # none where it is linked statically
        shutil.copy(os.path.realpath(os.path.join(build_folder, library)), os.path.join(stage, "lib", library))
        files.append(os.path.join(stage, "lib", library))
    for path in files:
        subprocess.run(["strip", path], check=True)
    toolkit = [f for root_ in machine.toolkit_folders() for f in (f"{root_}/lib64", f"{root_}/targets/x86_64-linux/lib")]
    libraries = copy_libraries(files, toolkit, os.path.join(stage, "lib"))
    for name in C_LIBRARY:
        shutil.copy(os.path.realpath(place_of(name, ["/lib64", "/lib/x86_64-linux-gnu"])), os.path.join(stage, "glibc", name))
    stand_in_for_cudnn(files, os.path.join(stage, "no-cudnn"))
    for name in os.listdir(os.path.join(root, "tests/bench")):
        if name.startswith("torch_") and name.endswith(".py"):
            shutil.copy(os.path.join(root, "tests/bench", name), os.path.join(stage, "tests/bench"))
    for name in os.listdir(os.path.join(root, "tests/golden")):
        if name.startswith("attn_"):
            shutil.copytree(os.path.join(root, "tests/golden", name), os.path.join(stage, "tests/golden", name))
    shutil.copy(os.path.join(root, "configs/demo.toml"), os.path.join(stage, "data"))
    environment = machine.clean_environment([os.path.join(stage, "lib"), *toolkit])
    run([os.path.join(stage, "bin/braid"), "prepare", *(os.path.join(root, name) for name in ("README.md", "tensor", "autograd", "nn")), "-o",
         os.path.join(stage, "data/text")], env=environment, stdout=sys.stderr)
    if losses:
        golden_losses(stage)
    every = files + [os.path.join(stage, "lib", name) for name in libraries]
    commit = machine.output_of(["git", "-C", root, "rev-parse", "--short", "HEAD"]).strip()
    manifest = {"commit": commit or "unknown", "arch": arch, "glibc": ".".join(str(part) for part in newest_glibc(every)), "libraries": libraries,
                "found there": sorted({name for path in files for name in needed(path) if name.startswith(ELSEWHERE)})}
    with open(os.path.join(stage, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
    archive = os.path.join(folder, ARCHIVE)
    with tarfile.open(archive, "w:xz", preset=1 if built else 9) as tar:
        tar.add(stage, arcname=".")
    shutil.rmtree(stage)
    own = os.path.dirname(os.path.abspath(__file__))
    shutil.copy(os.path.join(os.path.dirname(own), "gpu_check"), folder)
    shutil.copytree(own, os.path.join(folder, "gpu_check.d"), dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    size = sum(os.path.getsize(os.path.join(base, name)) for base, _, names in os.walk(folder) for name in names)
    print(f"{folder}: {size / 2**20:.1f} MiB; {json.dumps(manifest)}")
    if size > LIMIT:
        raise RuntimeError(f"{folder} has {size} bytes, {LIMIT} are the limit")


def unpack(folder):
    """The folder with the programs of a bundle: unpacked beside it, or where that is not possible in a temporary folder."""
    archive = os.path.join(folder, ARCHIVE)
    if not os.path.exists(archive):
        raise RuntimeError(f"{archive} does not exist: make it with scripts/gpu_check --bundle {folder}")
    with open(archive, "rb") as file:
        name = "unpacked-" + hashlib.sha256(file.read()).hexdigest()[:12]
    faults = []
    for base in (folder, os.environ.get("TMPDIR", "/tmp")):
        target = os.path.join(os.path.abspath(base), name)
        if os.path.exists(os.path.join(target, "manifest.json")):
            return target
        partial = f"{target}.{os.getpid()}"
        try:
            with tarfile.open(archive, "r:xz") as tar:
                tar.extractall(partial, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(partial)
            os.rename(partial, target)
            return target
        except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            if os.path.exists(os.path.join(target, "manifest.json")):  # another run was faster
                return target
            faults.append(f"{base}: {error}")
    raise RuntimeError(f"{archive} cannot be unpacked ({'; '.join(faults)}): copy it again, or set TMPDIR to a folder with 100 MiB")


def programs_of(folder):
    """(programs, LD_LIBRARY_PATH folders, what was found) of an unpacked bundle."""
    found_folders, found = machine.find_libraries([os.path.join(folder, "lib")])
    folders = [os.path.join(folder, "lib"), *(f for f in found_folders if f != os.path.join(folder, "lib"))]
    folders += [] if found["libcudnn.so.9"] else [os.path.join(folder, "no-cudnn")]  # else it would hide that of a system folder
    bin_folder = os.path.join(folder, "bin")
    programs = parts.Programs(*(os.path.join(bin_folder, name) for name in PROGRAMS), os.path.join(folder, "tests/bench"),
                              os.path.join(folder, "data/demo.toml"), os.path.join(folder, "data/text"), os.path.join(folder, "data/losses.json"))
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        found["manifest"] = json.load(file)
    for library, package in (("libcublasLt.so.13", "nvidia-cublas"), ("libcusolver.so.12", "nvidia-cusolver")):
        if library in found["manifest"]["found there"] and not found[library]:
            raise RuntimeError(f"{library} was found neither in a CUDA toolkit nor in a Python's packages, and the programs need it: install "
                               f"PyTorch for CUDA 13, its package {package} or the toolkit, or name its folder in LD_LIBRARY_PATH")
    environment = machine.clean_environment(folders, {"BRAID_TEST_FILES": folder})
    if not machine.output_of([programs.braid, "--version"], env=environment):
        # An older C library than the one the programs were linked with: they bring their own, with its loader.
        through = [os.path.join(folder, "glibc/ld-linux-x86-64.so.2"), "--library-path", ":".join([os.path.join(folder, "glibc"), *folders])]
        run_ = subprocess.run([*through, programs.braid, "--version"], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=60)
        found["without the loader"] = subprocess.run([programs.braid, "--version"], capture_output=True, text=True, env=environment,
                                                     stdin=subprocess.DEVNULL, timeout=60).stderr.strip()[-300:]
        if run_.returncode != 0:
            raise RuntimeError(f"braid does not start: {found['without the loader']}; by its own loader: {run_.stderr.strip()[-300:]}; found {found}")
        programs.through = through
    return programs, environment, found
