// The caching allocator over a source of memory that runs out when it should.
#include "braid/cuda/runtime/allocator.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <set>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {

constexpr int64_t kMebi = 1 << 20;

struct Book {  // what the source gave
  int64_t limit = 1024 * kMebi, given = 0;
  int gets = 0;
};

class Counted final : public cuda::MemorySource {
 public:
  explicit Counted(Book& book) : book_(book) {}
  ~Counted() override {  // an allocator leaves what it holds to the end of the program
    for (const auto& [data, bytes] : sizes_) std::free(data);
  }
  void* get(int64_t bytes) override {
    if (book_.given + bytes > book_.limit) return nullptr;
    void* data = std::malloc(static_cast<size_t>(bytes));
    sizes_[data] = bytes;
    book_.given += bytes;
    ++book_.gets;
    return data;
  }
  void give_back(void* data) override {
    book_.given -= sizes_.at(data);
    sizes_.erase(data);
    std::free(data);
  }
  int64_t free_bytes() override { return book_.limit - book_.given; }
  std::string name() override { return "the GPU"; }

 private:
  Book& book_;
  std::map<void*, int64_t> sizes_;
};

struct Fixture {
  Book book;
  cuda::CachingAllocator allocator{std::make_unique<Counted>(book)};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cuda_allocator, Fixture)

BOOST_AUTO_TEST_CASE(sizes_are_rounded_to_few) {
  using cuda::CachingAllocator;
  BOOST_TEST(CachingAllocator::rounded(0) == 512);
  BOOST_TEST(CachingAllocator::rounded(513) == 1024);
  BOOST_TEST(CachingAllocator::rounded(4097) == 4608);
  BOOST_TEST(CachingAllocator::rounded(kMebi) == kMebi);
  BOOST_TEST(CachingAllocator::rounded(kMebi + 1) == kMebi + (64 << 10));
  BOOST_TEST(CachingAllocator::rounded(100 * kMebi) == 100 * kMebi);
  for (int64_t n = 1; n < 64 * kMebi; n = n * 9 / 8 + 1) {
    const int64_t r = CachingAllocator::rounded(n);
    BOOST_TEST((r >= n && CachingAllocator::rounded(r) == r && r % 512 == 0));
    BOOST_TEST((r <= 4096 || r <= n + n / 8));
  }
}

BOOST_AUTO_TEST_CASE(released_buffers_are_handed_out_again) {
  void* a = allocator.allocate(40 * kMebi);
  void* b = allocator.allocate(5000);
  allocator.release(a, 40 * kMebi);
  allocator.release(b, 5000);
  BOOST_TEST(allocator.allocate(39 * kMebi) == a);
  BOOST_TEST(allocator.allocate(5100) == b);
  BOOST_TEST(book.gets == 2);
  BOOST_TEST(allocator.allocate(8 * kMebi) != a);
  BOOST_TEST(book.gets == 3);
}

BOOST_AUTO_TEST_CASE(small_buffers_share_pieces_and_do_not_overlap) {
  std::set<char*> all;
  for (int i = 0; i < 100; ++i) all.insert(static_cast<char*>(allocator.allocate(100000)));
  BOOST_TEST(all.size() == 100u);
  BOOST_TEST(book.gets == 1);
  for (auto it = all.begin(); std::next(it) != all.end(); ++it) BOOST_TEST(*std::next(it) - *it >= 100000);
  for (char* p : all) allocator.release(p, 100000);
  BOOST_TEST(allocator.stats().current == 0);
  allocator.release_cached();
  BOOST_TEST(book.given == 0);
  BOOST_TEST(allocator.stats().reserved == 0);
}

BOOST_AUTO_TEST_CASE(a_piece_in_use_is_kept) {
  void* a = allocator.allocate(1000);
  void* b = allocator.allocate(1000);
  allocator.release(a, 1000);
  allocator.release_cached();
  BOOST_TEST(book.given == 16 * kMebi);
  BOOST_TEST(allocator.allocate(1000) == a);
  allocator.release(a, 1000);
  allocator.release(b, 1000);
  allocator.release_cached();
  BOOST_TEST(book.given == 0);
}

// A released buffer is cut into the next ones, and is whole again when they are gone.
BOOST_AUTO_TEST_CASE(large_buffers_are_split_and_joined) {
  void* whole = allocator.allocate(100 * kMebi);
  allocator.release(whole, 100 * kMebi);
  char* parts[4];
  for (int i = 0; i < 4; ++i) parts[i] = static_cast<char*>(allocator.allocate(25 * kMebi));
  for (int i = 0; i < 4; ++i) BOOST_TEST(parts[i] == static_cast<char*>(whole) + i * 25 * kMebi);
  BOOST_TEST(allocator.stats().current == 100 * kMebi);
  for (int i : {0, 2, 1, 3}) allocator.release(parts[i], 25 * kMebi);
  BOOST_TEST(allocator.allocate(100 * kMebi) == whole);
  BOOST_TEST(book.gets == 1);
  allocator.release(whole, 100 * kMebi);
}

// Lifetimes as in a training step, in sizes that repeat: what is reserved stays close to the most that was in use.
BOOST_AUTO_TEST_CASE(little_is_reserved_beyond_the_peak) {
  book.limit = 16384 * kMebi;
  std::vector<std::pair<void*, int64_t>> kept;
  for (int step = 0; step < 3; ++step) {
    for (int64_t layer = 0; layer < 32; ++layer) {
      void* scratch[3];
      for (int64_t i = 0; i < 3; ++i) scratch[i] = allocator.allocate((11 + 7 * i + layer % 5) * kMebi);
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t bytes = (3 + 10 * i + layer % 3) * kMebi;
        kept.emplace_back(allocator.allocate(bytes), bytes);
      }
      for (int64_t i = 0; i < 3; ++i) allocator.release(scratch[i], 0);
    }
    for (; !kept.empty(); kept.pop_back()) allocator.release(kept.back().first, kept.back().second);
  }
  BOOST_TEST(allocator.stats().reserved < allocator.stats().peak + allocator.stats().peak / 10);
}

// Against a list of what is in use: no two buffers overlap, and at the end everything goes back.
BOOST_AUTO_TEST_CASE(any_order_of_sizes_and_pools) {
  book.limit = 1 << 30;
  std::map<char*, int64_t> used;
  uint64_t state = 1;
  const auto draw = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % n);
  };
  std::vector<int> pools;
  bool open = false;
  for (int i = 0; i < 4000; ++i) {
    const int64_t what = draw(100);
    if (what == 0 && !open) {
      pools.push_back(allocator.begin_pool()), open = true;
    } else if (what == 1 && open) {
      allocator.end_pool(), open = false;
    } else if (what == 2 && !open && !pools.empty()) {
      allocator.drop_pool(pools.back()), pools.pop_back();
    } else if (what == 3 && !open) {
      allocator.release_cached();
    } else if (what < 55) {
      const int64_t bytes = draw(2) == 0 ? draw(2000000) : draw(50000);
      char* data = static_cast<char*>(allocator.allocate(bytes));
      const auto next = used.lower_bound(data);
      BOOST_REQUIRE((next == used.end() || data + bytes <= next->first));
      BOOST_REQUIRE((next == used.begin() || std::prev(next)->first + std::prev(next)->second <= data));
      BOOST_REQUIRE(reinterpret_cast<uintptr_t>(data) % 16 == 0);
      used[data] = bytes;
    } else if (!used.empty()) {
      const auto it = std::next(used.begin(), draw(used.size()));
      allocator.release(it->first, it->second);
      used.erase(it);
    }
  }
  if (open) allocator.end_pool();
  for (int pool : pools) allocator.drop_pool(pool);
  for (const auto& [data, bytes] : used) allocator.release(data, bytes);
  BOOST_TEST(allocator.stats().current == 0);
  allocator.release_cached();
  BOOST_TEST(allocator.stats().reserved == 0);
  BOOST_TEST(book.given == 0);
}

// For memory checkers: the ends of a buffer are those of an allocation, and its contents are not those of another.
BOOST_AUTO_TEST_CASE(exact_buffers_are_allocations_of_their_own) {
  cuda::CachingAllocator exact(std::make_unique<Counted>(book), true);
  void *a = exact.allocate(1000), *b = exact.allocate(3 * kMebi + 1);
  BOOST_TEST(book.given == 1000 + 3 * kMebi + 1);
  exact.release(a, 1000);
  BOOST_TEST(book.given == 3 * kMebi + 1);
  const int pool = exact.begin_pool();
  void* c = exact.allocate(500);
  exact.release(c, 500);  // a graph may still write to it
  exact.end_pool();
  BOOST_TEST(book.given == 3 * kMebi + 1 + 500);
  exact.drop_pool(pool);
  exact.release(b, 3 * kMebi + 1);
  BOOST_TEST(book.given == 0);
}

BOOST_AUTO_TEST_CASE(statistics) {
  void* a = allocator.allocate(4 * kMebi);
  void* b = allocator.allocate(2 * kMebi);
  allocator.release(b, 2 * kMebi);
  BOOST_TEST(allocator.stats().current == 4 * kMebi);
  BOOST_TEST(allocator.stats().peak == 6 * kMebi);
  BOOST_TEST(allocator.stats().reserved == 6 * kMebi);
  allocator.reset_peak();
  BOOST_TEST(allocator.stats().peak == 4 * kMebi);
  allocator.release(a, 4 * kMebi);
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_given_up_before_memory_runs_out) {
  book.limit = 100 * kMebi;
  void* a = allocator.allocate(60 * kMebi);
  allocator.release(a, 60 * kMebi);
  void* b = allocator.allocate(80 * kMebi);
  BOOST_TEST(b != nullptr);
  BOOST_TEST(throws_with([&] { allocator.allocate(70 * kMebi); },
                         "out of memory on the GPU: requested 70 MiB, 20 MiB are free, 80 MiB are in use by tensors"));
  BOOST_TEST(allocator.stats().current == 80 * kMebi);
  allocator.release(b, 80 * kMebi);
}

BOOST_AUTO_TEST_CASE(a_pool_keeps_its_memory_to_itself) {
  const int pool = allocator.begin_pool();
  void* captured = allocator.allocate(4 * kMebi);
  allocator.release(captured, 4 * kMebi);
  BOOST_TEST(allocator.allocate(4 * kMebi) == captured);  // inside it is used again
  allocator.release(captured, 4 * kMebi);
  allocator.end_pool();
  void* other = allocator.allocate(4 * kMebi);
  BOOST_TEST(other != captured);
  allocator.release_cached();
  BOOST_TEST(book.given == 8 * kMebi);  // not given back either
  allocator.drop_pool(pool);
  BOOST_TEST(allocator.allocate(4 * kMebi) == captured);
  allocator.release(captured, 4 * kMebi);
  allocator.release(other, 4 * kMebi);
}

// Between the tensors that stay there are pieces that steps before the capture used: the graph may have them.
BOOST_AUTO_TEST_CASE(a_pool_takes_free_pieces_from_before) {
  void* before = allocator.allocate(64 * kMebi);
  allocator.release(before, 64 * kMebi);
  void* stays = allocator.allocate(8 * kMebi);
  const int pool = allocator.begin_pool();
  void* captured = allocator.allocate(40 * kMebi);
  allocator.release(captured, 40 * kMebi);
  allocator.end_pool();
  BOOST_TEST(book.given == 64 * kMebi);
  void* other = allocator.allocate(20 * kMebi);  // what is left is too small
  BOOST_TEST(book.given == 84 * kMebi);
  allocator.drop_pool(pool);
  allocator.release(stays, 8 * kMebi);
  BOOST_TEST(allocator.allocate(64 * kMebi) == before);
  allocator.release(before, 64 * kMebi);
  allocator.release(other, 20 * kMebi);
}

// During a capture the driver is called for memory, but never to free some; afterwards it is.
BOOST_AUTO_TEST_CASE(memory_that_runs_out_around_a_capture) {
  book.limit = 100 * kMebi;
  allocator.release(allocator.allocate(60 * kMebi), 60 * kMebi);
  const int pool = allocator.begin_pool();
  BOOST_CHECK_THROW(allocator.allocate(80 * kMebi), OutOfMemory);
  BOOST_TEST(book.given == 60 * kMebi);
  allocator.release(allocator.allocate(30 * kMebi), 30 * kMebi);
  allocator.end_pool();
  BOOST_TEST(throws_with([&] { allocator.allocate(80 * kMebi); },
                         "out of memory on the GPU: requested 80 MiB, 40 MiB are free, 0 MiB are in use by tensors, 30 "
                         "MiB are kept for captured steps"));
  allocator.drop_pool(pool);
  void* a = allocator.allocate(80 * kMebi);
  BOOST_TEST(book.given == 80 * kMebi);
  allocator.release(a, 80 * kMebi);
}

BOOST_AUTO_TEST_SUITE_END()
