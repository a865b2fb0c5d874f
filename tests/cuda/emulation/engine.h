// The engine that runs kernels on the CPU, as the emulated operations and the tests see it.
//
// A launch runs one block after the other; the threads of a block are fibers of one thread of the system. A fiber runs
// until it must wait for others - at a barrier of the block, or at a warp-wide operation - or ends. At a warp-wide
// operation the last lane to arrive computes the result for all of them.
#pragma once
#include "braid/cuda/device/language.h"
// (first: cuda/runtime/launch.h needs dim3)
#include <array>
#include <functional>
#include <map>
#include <source_location>
#include <string>

#include "braid/cuda/runtime/launch.h"

namespace braid::emulated {

#ifdef __cpp_lib_source_location
using Where = std::source_location;
#else  // clang 14 has no std::source_location with the standard library of GCC
class Where {
 public:
  static constexpr Where current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE(),
                                 unsigned column = __builtin_COLUMN()) {
    Where here;
    here.file_ = file, here.line_ = line, here.column_ = column;
    return here;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }
  constexpr unsigned column() const { return column_; }

 private:
  const char* file_ = "";
  unsigned line_ = 0, column_ = 0;
};
#endif

// The order in which threads that could run do run, and blocks too. `forward` and `reverse` together put every two
// threads in both orders between two barriers; `random` draws a new order at each barrier. Asynchronous copies happen
// at once in `forward`, at the wait in `reverse`, either in `random`.
enum class Order { forward, reverse, random };
void set_order(Order order, uint64_t seed = 0);

struct Statistics {
  uint64_t launches, blocks, threads;
  uint64_t switches;         // times a fiber was resumed
  uint64_t barriers;         // block barriers completed
  uint64_t warp_operations;  // warp-wide operations completed
  uint64_t mma;
  uint64_t tiles;           // 8 x 8 tiles moved by ldmatrix and stmatrix
  uint64_t bank_conflicts;  // extra passes over shared memory that those tiles would need
  uint64_t data_races;      // reported by the thread sanitizer, but for those of tests that race on purpose
};
Statistics& statistics();
const std::map<const void*, uint64_t>& launches_of();  // kernel -> number of its launches

using Body = std::function<void()>;  // what one thread does
void run(const void* kernel, const cuda::Launch& shape, const Body& thread);
void submit(std::function<void()> work);  // now; while a graph is captured, whenever it is replayed

// ---- what a running thread calls ----
unsigned lane();
[[noreturn]] void fail(const std::string& what);  // names the block and the thread
void block_barrier(const Where& where);
int block_vote(bool yes, const Where& where);  // a barrier that also counts who said yes

// One lane's arrival at a warp-wide operation. When all lanes of the mask that have not ended are there, the last one
// calls `compute` with every lane's `mine` (nullptr for absent lanes); then all continue. Without `compute` it is a
// barrier of the warp.
enum class Lanes { some, all };  // all: the operation needs 32 lanes
void meet(const char* operation, Lanes need, unsigned mask, void* mine, void (*compute)(void* const* lanes),
          const Where& where);

void* dynamic_shared();
void* static_shared(const void* key, size_t bytes);
void require_shared(const char* operation, const void* p, size_t bytes);  // in shared memory, aligned to bytes

void copy_async(void* to, const void* from, size_t bytes, bool valid);
void copy_async_commit();
void copy_async_wait(int newest);

// meet() with types: compute(lanes), lanes[l] the Lane of lane l or nullptr.
template <class Lane, class Compute>
void together(const char* operation, Lanes need, unsigned mask, Lane& mine, Compute, const Where& where) {
  meet(
      operation, need, mask, &mine,
      [](void* const* lanes) {
        std::array<Lane*, 32> typed;
        for (size_t l = 0; l < 32; ++l) typed[l] = static_cast<Lane*>(lanes[l]);
        Compute{}(typed);
      },
      where);
}

}  // namespace braid::emulated
