// BRAID_IVDEP before a loop: its iterations do not depend on each other through memory, so it may be vectorised without
// a check for overlap.
#pragma once

#if defined(__clang__)
#define BRAID_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define BRAID_IVDEP _Pragma("GCC ivdep")
#endif
