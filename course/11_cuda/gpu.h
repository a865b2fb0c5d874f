// Memory of the emulated GPU that is watched: every read and write of a kernel is counted, must lie inside the array,
// and must be ordered by a barrier with what other threads do at the same place. A place that nobody has written is
// NaN.
#pragma once
#include "braid/cuda/device/kernel.h"
// (first: it has the words of CUDA)
#include <string>
#include <vector>

namespace course {

namespace cuda = braid::cuda;

constexpr uint64_t kNever = ~uint64_t{0};  // the bytes that fresh shared memory has

// The last access to a place: who, and how many barriers and warp-wide operations there had been.
struct Access {
  uint64_t launch, block, barriers, operations;
  uint32_t thread, several;  // several: threads since the last barrier

  static Access now() {
    const braid::emulated::Statistics& all = braid::emulated::statistics();
    return {all.launches,
            all.blocks,
            all.barriers,
            all.warp_operations,
            threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z),
            false};
  }
  // Whether a barrier, or being one thread, orders this access and a later one.
  bool before(const Access& later) const {
    if (launch != later.launch) return true;
    if (block != later.block) return false;
    if (barriers < later.barriers) return true;
    if (several != 0) return false;
    return thread == later.thread || (thread / 32 == later.thread / 32 && operations < later.operations);
  }
};

constexpr Access kNobody{kNever, 0, 0, 0, 0, 0};

struct Cell {
  float value;
  Access wrote, read;
};

struct Counters {
  std::string name;
  int64_t reads = 0, writes = 0;
};

// What kernels did in the shared memory of all blocks.
inline Counters& shared_memory() {
  static Counters all{"shared memory"};
  return all;
}

// A place as a kernel sees it: x = place reads, place = x writes.
class Place {
 public:
  Place(Cell& cell, Counters& of, int index) : cell_(cell), of_(of), index_(index) {}
  operator float() const {
    const Access now = Access::now();
    if (cell_.wrote.launch == kNever) braid::emulated::fail("reads " + name() + ", which no thread has written");
    if (!cell_.wrote.before(now)) fail("reads", "written", cell_.wrote);
    const bool shared = !cell_.read.before(now) && cell_.read.block == now.block;
    cell_.read = now;
    cell_.read.several = shared ? 1 : 0;
    ++of_.reads;
    return cell_.value;
  }
  float operator=(float value) {
    const Access now = Access::now();
    if (!cell_.wrote.before(now)) fail("writes", "written", cell_.wrote);
    if (!cell_.read.before(now)) fail("writes", "read", cell_.read);
    cell_.wrote = now;
    ++of_.writes;
    return cell_.value = value;
  }
  float operator=(const Place& other) { return *this = static_cast<float>(other); }
  float operator+=(float value) { return *this = static_cast<float>(*this) + value; }

 private:
  std::string name() const { return of_.name + "[" + std::to_string(index_) + "]"; }
  [[noreturn]] void fail(const char* does, const char* did, const Access& other) const {
    const bool here = other.block == braid::emulated::statistics().blocks;
    braid::emulated::fail(std::string(does) + " " + name() + ", which thread " + std::to_string(other.thread) +
                          (here ? "" : " of another block") + " has " + did +
                          (here ? ", and no barrier lies between them: a race" : ": blocks have no order, a race"));
  }

  Cell& cell_;
  Counters& of_;
  int index_;
};

inline Cell& checked(Cell* cells, int index, int size, const char* name) {
  if (index < 0 || index >= size)
    braid::emulated::fail(std::string("uses ") + name + "[" + std::to_string(index) + "], which has " +
                          std::to_string(size) + " elements");
  return cells[index];
}

// An array of n floats in shared memory, a member of the struct that shared<T>() returns.
template <int n>
struct Shared {
  Cell cells[n];
  Place operator[](int index) { return {checked(cells, index, n, "shared memory"), shared_memory(), index}; }
};

// An array in the GPU's memory, as kernels take it: a handle.
struct Global {
  Cell* cells;
  Counters* counters;
  int size;
  Place operator[](int index) const { return {checked(cells, index, size, counters->name.c_str()), *counters, index}; }
};

// The host's side of it.
class Array {
 public:
  explicit Array(const std::string& name, size_t size) : counters_{name}, cells_(size) {
    for (Cell& cell : cells_) cell = {__builtin_nanf(""), kNobody, kNobody};
  }
  Array(const std::string& name, const std::vector<float>& values) : Array(name, values.size()) {
    for (size_t i = 0; i < values.size(); ++i) cells_[i] = {values[i], {}, {}};
  }
  operator Global() { return {cells_.data(), &counters_, static_cast<int>(cells_.size())}; }
  float operator[](size_t i) const { return cells_[i].value; }
  const Counters& counters() const { return counters_; }

 private:
  Counters counters_;
  std::vector<Cell> cells_;
};

// C = A B, row-major: a (M, K), b (K, N), c (M, N).
struct Sizes {
  int M, N, K;
};

}  // namespace course
