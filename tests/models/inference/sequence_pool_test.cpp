#include "braid/models/inference/sequence_pool.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(sequence_pool)

namespace {

std::vector<int32_t> text(int32_t salt, int64_t length) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>((salt + i * 31 + i * i) % 200));
  return ids;
}

// Normalised last hidden states (T, D) of one pass over a text.
Tensor whole(const models::LanguageModel& model, const std::vector<int32_t>& ids) {
  const NoGrad off;
  const Tensor h = model.hidden(from_vector(ids, {1, std::ssize(ids)}));
  return reshape(h, {h.dim(1), h.dim(2)});
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_in_pieces_beside_each_other_get_what_each_gets_alone) {
  const models::Dcformer model = small_model();
  const std::unique_ptr<models::SequencePool> pool = model.make_sequence_pool(96);
  const std::vector<int32_t> a = text(3, 20), b = text(50, 9);
  const Tensor of_a = whole(model, a), of_b = whole(model, b);
  const int first = pool->open(), second = pool->open();
  BOOST_REQUIRE(pool->reserve(first, 20));
  BOOST_REQUIRE(pool->reserve(second, 9));
  const auto piece = [](const std::vector<int32_t>& ids, size_t begin, size_t end) {
    return std::span<const int32_t>(ids).subspan(begin, end - begin);
  };
  const std::vector<models::SequencePool::Part> one = {{first, piece(a, 0, 11)}, {second, piece(b, 0, 4)}},
                                                two = {{second, piece(b, 4, 5)}, {first, piece(a, 11, 12)}},
                                                three = {{first, piece(a, 12, 20)}, {second, piece(b, 5, 9)}};
  const Tensor h1 = pool->hidden(one), h2 = pool->hidden(two), h3 = pool->hidden(three);
  BOOST_TEST(is_close(concat({h1.sliced(0, 0, 11).clone(), h2.sliced(0, 1, 2).clone(), h3.sliced(0, 0, 8).clone()}, 0),
                      of_a, 1e-10));
  BOOST_TEST(is_close(
      concat({h1.sliced(0, 11, 15).clone(), h2.sliced(0, 0, 1).clone(), h3.sliced(0, 8, 12).clone()}, 0), of_b, 1e-10));
  BOOST_TEST(pool->length(first) == 20);
  BOOST_TEST(pool->length(second) == 9);
  BOOST_TEST(!requires_grad(h1));
}

BOOST_AUTO_TEST_CASE(a_fork_continues_by_itself) {
  const models::Dcformer model = small_model();
  const std::unique_ptr<models::SequencePool> pool = model.make_sequence_pool(96);
  const std::vector<int32_t> start = text(3, 12), more = text(90, 5);
  std::vector<int32_t> joined = start;
  joined.insert(joined.end(), more.begin(), more.end());
  const int first = pool->open();
  BOOST_REQUIRE(pool->reserve(first, 13));
  pool->hidden(std::vector<models::SequencePool::Part>{{first, start}});
  const int copy = pool->fork(first, 100);
  const int64_t shared = pool->length(copy);  // a pool may share less than is asked for
  BOOST_TEST(shared == 12);
  pool->hidden(std::vector<models::SequencePool::Part>{{first, text(7, 1)}});
  BOOST_REQUIRE(pool->reserve(copy, 17 - shared));
  const std::span<const int32_t> rest = std::span<const int32_t>(joined).subspan(static_cast<size_t>(shared));
  const Tensor h = pool->hidden(std::vector<models::SequencePool::Part>{{copy, rest}});
  BOOST_TEST(is_close(h, whole(model, joined).sliced(0, shared, 17).clone(), 1e-10));
}

BOOST_AUTO_TEST_CASE(blocks_are_counted) {
  const models::Dcformer model = small_model();
  const std::unique_ptr<models::SequencePool> pool = models::make_separate_pool(model, 40);
  BOOST_TEST(!pool->invariant());
  BOOST_TEST(pool->blocks() == pool->blocks_for(40));
  const int first = pool->open(), second = pool->open();
  BOOST_TEST(pool->free_blocks() == 3);
  BOOST_TEST(pool->reserve(first, 17));
  BOOST_TEST(pool->reserve(first, 17));  // the same room
  BOOST_TEST(pool->free_blocks() == 1);
  BOOST_TEST(!pool->reserve(second, 17));
  BOOST_TEST(pool->free_blocks() == 1);
  BOOST_TEST(pool->reserve(second, 16));
  pool->hidden(std::vector<models::SequencePool::Part>{{first, text(1, 17)}, {second, text(2, 16)}});
  BOOST_TEST(pool->bytes() > 0);
  BOOST_TEST(!pool->reserve(second, 1));
  const int none = pool->fork(second, 16);  // no block is free
  BOOST_TEST(pool->length(none) == 0);
  pool->close(none);
  pool->close(first);
  BOOST_TEST(pool->free_blocks() == 2);
  const int part = pool->fork(second, 9);  // a cache of the model cannot be cut
  BOOST_TEST(pool->length(part) == 0);
  BOOST_TEST(part == first);  // the number is used again
  pool->close(part), pool->close(second);
  BOOST_TEST(pool->free_blocks() == 3);
  BOOST_TEST(pool->bytes() == 0);
}

BOOST_AUTO_TEST_CASE(wrong_use_is_named) {
  const models::Dcformer model = small_model();
  const std::unique_ptr<models::SequencePool> pool = models::make_separate_pool(model, 40);
  const int first = pool->open();
  BRAID_CHECK_FAILS(pool->hidden(std::vector<models::SequencePool::Part>{{first, text(1, 3)}}), ErrorKind::misuse,
                    "3 tokens after position 0 of sequence 0", "room reserved for them, found room for 0");
  BRAID_CHECK_FAILS(pool->hidden(std::vector<models::SequencePool::Part>{{first, text(1, 0)}}), ErrorKind::misuse,
                    "0 tokens after position 0 of sequence 0: expected at least one");
  pool->close(first);
  BRAID_CHECK_FAILS(pool->length(first), ErrorKind::misuse, "sequence 0 is not open");
  BRAID_CHECK_FAILS(models::make_separate_pool(model, 0), ErrorKind::misuse, "at least one position, got 0");
}

BOOST_AUTO_TEST_SUITE_END()
