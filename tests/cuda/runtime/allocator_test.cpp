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
  BOOST_TEST(CachingAllocator::rounded(kMebi + 1) == 2 * kMebi);
  BOOST_TEST(CachingAllocator::rounded(100 * kMebi) == 104 * kMebi);
  for (int64_t n = 1; n < 64 * kMebi; n = n * 9 / 8 + 1) {
    const int64_t r = CachingAllocator::rounded(n);
    BOOST_TEST((r >= n && CachingAllocator::rounded(r) == r && r % 512 == 0));
    BOOST_TEST((r <= 4096 || r <= n + n / 8 + 2 * kMebi));
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
                         "out of memory on the GPU: requested 70 MiB, 20 MiB are free, 80 MiB are in use by tensors; "
                         "lower train.batch_size"));
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
                         "out of memory on the GPU: requested 80 MiB, 70 MiB are free, 0 MiB are in use by tensors, 30 "
                         "MiB are kept for captured steps; lower train.batch_size"));
  BOOST_TEST(throws_with([&] { allocator.allocate(80 * kMebi); }, "or set train.recompute=true or train.graph=false"));
  allocator.drop_pool(pool);
  void* a = allocator.allocate(80 * kMebi);
  BOOST_TEST(book.given == 80 * kMebi);
  allocator.release(a, 80 * kMebi);
}

BOOST_AUTO_TEST_SUITE_END()
