// The schedule of a block's threads, their barriers and warp-wide operations. Compiled without sanitizers.
#include "tests/cuda/emulation/engine.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "braid/tensor/error.h"
#include "tests/cuda/emulation/fibers.h"
#include "tests/cuda/emulation/memory.h"
#include "tests/cuda/emulation/running_thread.h"

namespace braid::emulated {

namespace {

constexpr size_t kMaxThreads = 1024;

struct Cancelled {};  // unwinds the fibers of a block that failed

struct Copy {
  int group;
  void* to;
  const void* from;
  size_t bytes;
  bool valid;
};

struct Thread {
  enum State { ready, at_barrier, at_warp_operation, ended };
  State state = ready;
  unsigned id = 0;  // linear index in the block
  uint3 index{};
  const char* operation = "";  // what it waits for
  unsigned mask = 0;
  Lanes need = Lanes::some;
  void* mine = nullptr;
  void (*compute)(void* const*) = nullptr;
  Where where;
  bool vote = false;
  int votes = 0;
  int copy_group = 0;        // number of copy_async_commit() so far
  std::vector<Copy> copies;  // not yet done, oldest first
  Fiber fiber;
};

struct Warp {
  unsigned waiting, ended;  // lanes at a warp-wide operation; lanes that ended or never were
};

Order order = Order::forward;
std::mt19937_64 random_bits;
Statistics counts{};
std::map<const void*, uint64_t> kernels;
std::mutex one_launch_at_a_time;

// The block that runs now.
std::vector<Thread> threads;
std::vector<unsigned> turn;  // turn[k]: the thread with the k-th highest priority
std::vector<unsigned> rank;  // its inverse
std::array<Warp, kMaxThreads / 32> warps;
std::array<uint64_t, kMaxThreads / 64> runnable;  // bit k: thread turn[k] is ready
Thread* current;                                  // null while the scheduler runs
const Body* body;
size_t alive;
std::exception_ptr error;
bool cancelled;

std::string text(const uint3& i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

std::string name_of_thread(const uint3& index) { return "block " + text(blockIdx) + " thread " + text(index); }

// ---- messages ----

std::string describe(const Thread& t) {
  const std::string place = std::string(" at ") + t.where.file_name() + ":" + std::to_string(t.where.line());
  if (t.state == Thread::ended) return "ended";
  if (t.state == Thread::at_barrier) return "wait in __syncthreads" + place;
  char mask[16];
  std::snprintf(mask, sizeof mask, "0x%08x", t.mask);
  return std::string("wait in ") + t.operation + " (lanes " + mask + ")" + place;
}

std::string stuck() {  // "threads 0-15, 40 wait in ...; threads 16-39 ended"
  std::vector<std::pair<std::string, std::string>> groups;
  for (unsigned first = 0; first < threads.size();) {
    const std::string what = describe(threads[first]);
    unsigned last = first;
    while (last + 1 < threads.size() && describe(threads[last + 1]) == what) ++last;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == what; });
    if (group == groups.end()) group = groups.insert(group, {what, ""});
    if (!group->second.empty()) group->second += ", ";
    group->second += std::to_string(first);
    if (last > first) group->second += "-" + std::to_string(last);
    first = last + 1;
  }
  std::string all = "block " + text(blockIdx) + " cannot continue:";
  for (const auto& [what, ids] : groups) all.append("\n  threads ").append(ids).append(" ").append(what);
  return all;
}

// ---- schedule ----

void make_ready(Thread& t) {
  t.state = Thread::ready;
  warps[t.id / 32].waiting &= ~(1u << t.id % 32);
  runnable[rank[t.id] / 64] |= uint64_t{1} << rank[t.id] % 64;
}

void not_runnable(const Thread& t) { runnable[rank[t.id] / 64] &= ~(uint64_t{1} << rank[t.id] % 64); }

void resume(Thread& t) {
  ++counts.switches;
  current = &t;
  threadIdx = t.index;
  t.fiber.resume();
  current = nullptr;
}

void wait() {  // until somebody has made this thread ready again
  not_runnable(*current);
  current->fiber.wait();
  if (cancelled) throw Cancelled{};
}

void draw_order(std::vector<unsigned>& items, bool by_warp) {
  std::iota(items.begin(), items.end(), 0u);
  if (order == Order::reverse) std::reverse(items.begin(), items.end());
  if (order != Order::random) return;
  std::shuffle(items.begin(), items.end(), random_bits);
  if (by_warp && random_bits() % 2 == 0) {  // half the time one warp runs far ahead of the others
    std::vector<uint64_t> priority((items.size() + 31) / 32);
    for (auto& p : priority) p = random_bits();
    std::stable_sort(items.begin(), items.end(),
                     [&](unsigned a, unsigned b) { return priority[a / 32] < priority[b / 32]; });
  }
}

void draw_turns() {
  draw_order(turn, true);
  for (unsigned k = 0; k < turn.size(); ++k) rank[turn[k]] = k;
  runnable.fill(0);
  for (Thread& t : threads) {
    if (t.state == Thread::ready) make_ready(t);
  }
}

Thread* next_runnable() {
  for (size_t word = 0; word < runnable.size(); ++word) {
    if (runnable[word] == 0) continue;
    return &threads[turn[word * 64 + static_cast<size_t>(std::countr_zero(runnable[word]))]];
  }
  return nullptr;
}

bool same_place(const Thread& a, const Thread& b) {
  return a.where.line() == b.where.line() && a.where.column() == b.where.column() &&
         std::strcmp(a.where.file_name(), b.where.file_name()) == 0;
}

bool release_block_barrier() {
  std::vector<Thread*> waiting;
  std::vector<Fiber*> fibers;
  int votes = 0;
  for (Thread& t : threads) {
    if (t.state == Thread::ended) continue;
    if (t.state != Thread::at_barrier || (!waiting.empty() && !same_place(t, *waiting[0]))) return false;
    waiting.push_back(&t);
    fibers.push_back(&t.fiber);
    votes += t.vote ? 1 : 0;
  }
  ++counts.barriers;
  order_fibers(fibers.data(), fibers.size(), 0);
  for (Thread* t : waiting) {
    t->state = Thread::ready;
    t->votes = votes;
  }
  draw_turns();
  return true;
}

// The operation that `one` waits in, if its last lane has arrived.
void complete_warp_operation(const Thread& one) {
  const unsigned warp = one.id / 32;
  const unsigned expected = one.need == Lanes::all ? one.mask : one.mask & ~warps[warp].ended;
  if ((expected & ~warps[warp].waiting) != 0) return;
  void* lanes[32] = {};
  Thread* group[32];
  Fiber* fibers[32];
  size_t count = 0;
  for (unsigned rest = expected; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    Thread& t = threads[warp * 32 + lane];
    if (t.compute != one.compute || t.mask != one.mask || !same_place(t, one)) return;
    lanes[lane] = t.mine;
    fibers[count] = &t.fiber;
    group[count++] = &t;
  }
  ++counts.warp_operations;
  if (one.compute) {
    const UnseenByThreadSanitizer guard;
    one.compute(lanes);
  } else {
    order_fibers(fibers, count, 1 + warp * 61 + one.mask % 61);
  }
  for (size_t i = 0; i < count; ++i) make_ready(*group[i]);
}

void end(Thread& t) {  // some may have waited for this thread only
  t.state = Thread::ended;
  Warp& warp = warps[t.id / 32];
  warp.ended |= 1u << t.id % 32;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((warp.waiting >> lane & 1u) != 0) complete_warp_operation(threads[t.id / 32 * 32 + lane]);
  }
}

void life_of(Thread& t) {
  acquire(Edge::start_of_threads);
  try {
    if (!cancelled) {
      (*body)();
      end(t);
    }
  } catch (const Cancelled&) {
  } catch (...) {
    if (!error) error = std::current_exception();
  }
  t.state = Thread::ended;
  --alive;
  not_runnable(t);
  release(Edge::end_of_threads);
}

void run_block(const cuda::Launch& shape) {
  ++counts.blocks;
  counts.threads += threads.size();
  alive = threads.size();
  cancelled = false;
  error = nullptr;
  begin_shared(shape.shared_bytes);
  warps.fill({0, ~0u});
  for (unsigned i = 0; i < threads.size(); ++i) {
    Thread& t = threads[i];
    t.state = Thread::ready;
    t.id = i;
    warps[i / 32].ended &= ~(1u << i % 32);
    t.index = {i % shape.block.x, i / shape.block.x % shape.block.y, i / (shape.block.x * shape.block.y)};
    t.copy_group = 0;
    t.copies.clear();
    t.fiber.start(i, name_of_thread(t.index), [&t] { life_of(t); });
  }
  draw_turns();
  while (alive > 0 && !error) {
    if (Thread* t = next_runnable()) {
      resume(*t);
    } else if (!release_block_barrier()) {
      error = std::make_exception_ptr(Error(ErrorKind::misuse, stuck()));
    }
  }
  cancelled = true;
  for (Thread& t : threads) {
    if (t.state != Thread::ended) resume(t);
  }
  end_shared();
  if (error) std::rethrow_exception(std::exchange(error, nullptr));
}

void perform(const Copy& c) {
  if (c.valid) {
    std::memcpy(c.to, c.from, c.bytes);
  } else {
    std::memset(c.to, 0, c.bytes);
  }
}

void check_shape(const cuda::Launch& shape, uint64_t block, uint64_t grid) {
  check(block > 0 && block <= kMaxThreads, "launch",
        [&] { return "a block of " + std::to_string(block) + " threads; 1 to 1024 are possible"; });
  check(grid > 0 && shape.grid.x <= 0x7fffffffu && shape.grid.y <= 65535 && shape.grid.z <= 65535, "launch", [&] {
    return "a grid of " + std::to_string(shape.grid.x) + " x " + std::to_string(shape.grid.y) + " x " +
           std::to_string(shape.grid.z) + " blocks; 1 to 2^31 - 1 x 65535 x 65535 are possible";
  });
  check(shape.shared_bytes <= kMaxSharedBytes, "launch", [&] {
    return std::to_string(shape.shared_bytes) + " bytes of shared memory; " + std::to_string(kMaxSharedBytes) +
           " are possible";
  });
}

}  // namespace

void set_order(Order chosen, uint64_t seed) {
  order = chosen;
  random_bits.seed(seed);
}

Statistics& statistics() { return counts; }
const std::map<const void*, uint64_t>& launches_of() { return kernels; }

void run(const void* kernel, const cuda::Launch& shape, const Body& thread) {
  const std::lock_guard lock(one_launch_at_a_time);
  const UnseenByThreadSanitizer guard;
  const OnTheGpu on_the_gpu;
  const struct AfterAllThreads {
    ~AfterAllThreads() { acquire(Edge::end_of_threads); }
  } at_return;
  const uint64_t size = uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  const uint64_t blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  check_shape(shape, size, blocks);
  ++counts.launches;
  ++kernels[kernel];
  gridDim = shape.grid;
  blockDim = shape.block;
  body = &thread;
  provide_stacks(size);
  release(Edge::start_of_threads);
  threads = std::vector<Thread>(size);
  turn.resize(size);
  rank.resize(size);
  std::vector<unsigned> block_order(blocks);
  draw_order(block_order, false);
  for (const unsigned b : block_order) {
    blockIdx = {b % shape.grid.x, b / shape.grid.x % shape.grid.y, b / (shape.grid.x * shape.grid.y)};
    run_block(shape);
  }
}

int block_vote(bool yes, const Where& where) {
  current->state = Thread::at_barrier;
  current->where = where;
  current->vote = yes;
  wait();
  return current->votes;
}

void block_barrier(const Where& where) { block_vote(false, where); }

void meet(const char* operation, Lanes need, unsigned mask, void* mine, void (*compute)(void* const*),
          const Where& where) {
  Thread& self = *current;
  if ((mask >> lane() & 1u) == 0) fail(std::string(operation) + ": the mask leaves out the calling lane");
  self.state = Thread::at_warp_operation;
  warps[self.id / 32].waiting |= 1u << lane();
  self.operation = operation;
  self.mask = mask;
  self.need = need;
  self.mine = mine;
  self.compute = compute;
  self.where = where;
  complete_warp_operation(self);
  if (self.state != Thread::ready) wait();
}

void copy_async(void* to, const void* from, size_t bytes, bool valid) {
  const Copy copy{current->copy_group, to, from, bytes, valid};
  const bool at_once = order == Order::forward || (order == Order::random && random_bits() % 2 == 0);
  if (at_once) return perform(copy);
  const UnseenByThreadSanitizer guard;
  current->copies.push_back(copy);
}

void copy_async_commit() { ++current->copy_group; }

void copy_async_wait(int newest) {
  auto& copies = current->copies;
  auto rest = copies.begin();
  for (; rest != copies.end() && rest->group < current->copy_group - newest; ++rest) perform(*rest);
  const UnseenByThreadSanitizer guard;
  copies.erase(copies.begin(), rest);
}

std::string running_thread() { return current ? name_of_thread(current->index) : ""; }

void fail(const std::string& what) {
  throw Error(ErrorKind::misuse, (current ? running_thread() : "block " + text(blockIdx)) + ": " + what);
}

unsigned lane() { return current->id % 32; }

}  // namespace braid::emulated
