#include "braid/tensor/storage.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "braid/tensor/tensor.h"
#include "tests/support/compare.h"
#include "tests/support/in_child.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::test;

namespace {
thread_local bool memory_is_spent = false;
}

// Not inlined: GCC would miss the pair of new and delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* data = memory_is_spent ? nullptr : std::malloc(bytes);
  if (!data) throw std::bad_alloc();
  return data;
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return memory_is_spent ? nullptr : std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, const std::nothrow_t&) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }

BOOST_AUTO_TEST_SUITE(storage)

namespace {
constexpr int64_t kMiB = 1 << 20;
bool aligned(const void* data, uintptr_t to) { return reinterpret_cast<uintptr_t>(data) % to == 0; }
}  // namespace

// Another thread of the parent may hold any lock meanwhile; also one of a sanitizer, which the child cannot free.
BOOST_AUTO_TEST_CASE(the_child_of_a_fork_can_allocate,
                     *boost::unit_test::enable_if<!kThreadSanitizer && !kAddressSanitizer>()) {
  std::atomic<bool> enough{false};
  std::thread other([&] {
    while (!enough) const Tensor x = empty({1 << 16});
  });
  bool all = true;
  for (int i = 0; i < 400 && all; ++i) all = in_child([] { return empty({1 << 16}).numel() == 1 << 16; });
  enough = true;
  other.join();
  BOOST_TEST(all);
}

BOOST_AUTO_TEST_CASE(buffers_are_aligned) {
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{65}, 4096 + int64_t{1}, 3 * kMiB, 9 * kMiB}) {
    Storage s(bytes, kCpu);
    BOOST_TEST(aligned(s.data(), 64));
    BOOST_TEST(s.bytes() == bytes);
  }
}

BOOST_AUTO_TEST_CASE(statistics_follow_what_is_held) {
  int64_t before = memory_stats(kCpu).current;
  reset_peak_memory(kCpu);
  {
    Storage a(2 * kMiB, kCpu);
    { Storage b(3 * kMiB, kCpu); }
    BOOST_TEST(memory_stats(kCpu).current - before == 2 * kMiB);
  }
  BOOST_TEST(memory_stats(kCpu).current == before);
  BOOST_TEST(memory_stats(kCpu).peak - before == 5 * kMiB);
  reset_peak_memory(kCpu);
  BOOST_TEST(memory_stats(kCpu).peak == before);
}

BOOST_AUTO_TEST_CASE(freed_buffers_are_used_again_and_given_back) {
  release_cached_memory(kCpu);
  Storage keep(16 * kMiB, kCpu);  // the peak, so that the cache may hold something
  const int64_t before = memory_stats(kCpu).current;
  for (const int64_t size : {8 * kMiB, kMiB / 4}) {
    [[maybe_unused]] const void* first = nullptr;
    {
      Storage a(size, kCpu);
      first = a.data();
    }
#if !defined(__SANITIZE_ADDRESS__)
    BOOST_TEST(memory_stats(kCpu).reserved - before == size);
    {
      Storage b(size - 100, kCpu);  // a little smaller: still the same buffer
      BOOST_TEST((b.data() == first));
      Storage c(size / 4, kCpu);  // too small to be worth a buffer of four times the size
      BOOST_TEST((c.data() != first));
    }
#endif
    release_cached_memory(kCpu);
    BOOST_TEST(memory_stats(kCpu).reserved == before);
  }
}

BOOST_AUTO_TEST_CASE(the_cache_stays_below_the_peak) {
  release_cached_memory(kCpu);
  reset_peak_memory(kCpu);
  for (int64_t size = 2; size < 20; ++size) Storage(size * kMiB, kCpu);  // every size is new: nothing fits twice
  MemoryStats stats = memory_stats(kCpu);
  BOOST_TEST(stats.reserved <= stats.peak);
  release_cached_memory(kCpu);
}

// Buffers that nobody needs any more do not push out a larger one that is needed again and again.
BOOST_AUTO_TEST_CASE(the_cache_loses_what_was_released_first, *boost::unit_test::enable_if<!kAddressSanitizer>()) {
  release_cached_memory(kCpu);
  reset_peak_memory(kCpu);
  const int64_t before = memory_stats(kCpu).current;
  { const Storage a(4 * kMiB, kCpu), b(4 * kMiB, kCpu), c(4 * kMiB, kCpu), d(4 * kMiB, kCpu); }
  { const Storage larger(10 * kMiB, kCpu); }
  BOOST_TEST(memory_stats(kCpu).reserved - before == (10 + 2 * 4) * kMiB);  // of at most 16 and a quarter
  release_cached_memory(kCpu);
}

// A destructor calls release(): an exception there ends the program.
BOOST_AUTO_TEST_CASE(releasing_needs_no_memory) {
  const Storage keep(16 * kMiB, kCpu);  // the peak, so that the cache may hold something
  for (int64_t size : {int64_t{100}, 2 * kMiB, 8 * kMiB, 8 * kMiB - 100}) {  // the last one out of the cache
    auto buffer = std::make_unique<Storage>(size, kCpu);
    memory_is_spent = true;
    buffer.reset();
    memory_is_spent = false;
  }
  BOOST_TEST(memory_stats(kCpu).current >= 16 * kMiB);
}

BOOST_AUTO_TEST_CASE(impossible_requests_are_rejected_with_the_size) {
  int64_t before = memory_stats(kCpu).current;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  BOOST_TEST(throws_with([] { Storage(int64_t{1} << 60, kCpu); }, "out of memory: cannot get 1099511627776 MiB"));
#endif
  BOOST_TEST(throws_with([] { empty({int64_t{1} << 61, 2}); }, "is larger than any memory"));
  BOOST_TEST(throws_with([] { empty({(int64_t{1} << 61) - 1}); }, "is larger than any memory"));
  BOOST_TEST(memory_stats(kCpu).current == before);
}

BOOST_AUTO_TEST_SUITE_END()
