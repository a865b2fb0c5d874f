// Version, commit, backends and compiler of this program, and the processor that it runs on.
#pragma once
#include <string>

namespace braid::apps {

// The commit of the source tree when the program was built: "a3eb0ad51c2f", with "-dirty" when files had changed since;
// "unknown" outside of a git repository.
const char* build_commit();

std::string version();             // "0.1.0"
std::string backends();            // "CPU, CUDA 12.4, MPI": what was compiled in
std::string compiler();            // "GCC 12.2, Release, for x86-64"
std::string kernels();             // "avx2": which of the compiled kernels run on this machine
std::string processor_features();  // "AVX2, FMA": instructions of this machine that matter here

std::string version_text();  // of braid --version, one fact a line
std::string version_line();  // "braid 0.1.0, commit a3eb0ad51c2f, CPU, CUDA 12.4, MPI"

// "2026-11-22T04:18:05+01:00": local time with its distance from UTC. `unix_seconds`: since 1970.
std::string time_text(double unix_seconds);
double unix_time();  // now

}  // namespace braid::apps
