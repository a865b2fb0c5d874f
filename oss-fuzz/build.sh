#!/bin/bash -eu
# Builds every target of tests/fuzz with the flags of the service into $OUT, with its first files, and the libraries
# that it loads beside it.
: "${SRC:?}" "${OUT:?}" "${CC:?}" "${CXX:?}" "${LIB_FUZZING_ENGINE:?}"
build=${WORK:-$SRC}/braid-build
cmake -S "$SRC/braid" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_CXX_FLAGS="${CXXFLAGS:-}" -DBRAID_FUZZ=ON -DBRAID_FUZZ_FLAGS= -DBRAID_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
  -DBRAID_TESTS=OFF -DBRAID_APPS=OFF -DBRAID_CUDA=OFF -DBRAID_MPI=OFF -DBRAID_DNNL=OFF -DBRAID_LAPACK=OFF \
  -DBRAID_HARDEN=OFF -DBRAID_KERNELS=all
cmake --build "$build"
mkdir -p "$OUT/lib"
for target in "$build"/tests/fuzz/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  name=$(basename "$target")
  cp "$target" "$OUT/$name"
  patchelf --set-rpath "\$ORIGIN/lib" "$OUT/$name"
  ldd "$target" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so/ { print $3 }' | xargs -r -I{} cp -n {} "$OUT/lib/"
  corpus=$SRC/braid/tests/fuzz/corpora/${name#fuzz_}
  [ -d "$corpus" ] || { echo "$name begins without files: there is no $corpus" >&2; continue; }
  python3 - "$corpus" "$OUT/${name}_seed_corpus.zip" <<'PYTHON'
import pathlib, sys, zipfile
with zipfile.ZipFile(sys.argv[2], "w") as out:
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        out.write(path, path.name)
PYTHON
done
