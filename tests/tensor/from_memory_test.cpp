#include "braid/tensor/from_memory.h"

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <thread>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(from_memory_)

namespace {

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

// A function that counts its calls.
struct Counter {
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  Release release() const {
    return [calls = calls] { ++*calls; };
  }
  int count() const { return *calls; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_memory_is_shared) {
  std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  Tensor x = from_memory(numbers.data(), {2, 3});
  BOOST_TEST((x.data<float>() == numbers.data()));
  BOOST_TEST(x.is_contiguous());
  numbers[4] = 50;
  BOOST_TEST(is_close(values(x), {1, 2, 3, 4, 50, 6}, 0));
  x.sliced(0, 0, 1).fill(7);
  BOOST_TEST(numbers == (std::vector<float>{7, 7, 7, 4, 50, 6}), boost::test_tools::per_element());
  BOOST_TEST(!x.clone().shares_storage(x));
}

BOOST_AUTO_TEST_CASE(every_type_and_layout) {
  std::vector<int64_t> n{0, 1, 2, 3, 4, 5, 6, 7};
  BOOST_TEST(is_close(values(from_memory(n.data() + 1, {2, 2}, {4, 2}, DType::i64)), {1, 3, 5, 7}, 0));
  BOOST_TEST(is_close(values(from_memory(n.data(), {2, 3}, {0, 1}, DType::i64)), {0, 1, 2, 0, 1, 2}, 0));
  BOOST_TEST(is_close(values(from_memory(n.data(), {4, 2}, {1, 4}, DType::i64)), {0, 4, 1, 5, 2, 6, 3, 7}, 0));
  BOOST_TEST(is_close(values(from_memory(n.data() + 7, {}, {}, DType::i64)), {7}, 0));
  std::array<bfloat16, 3> halves{bfloat16(1.5f), bfloat16(2), bfloat16(-3)};
  BOOST_TEST(is_close(values(from_memory(halves.data(), {3})), {1.5, 2, -3}, 0));
  const std::array<uint8_t, 2> bytes{3, 250};
  BOOST_TEST(is_close(values(from_memory(bytes.data(), {2})), {3, 250}, 0));
  BOOST_TEST(from_memory(static_cast<float*>(nullptr), {3, 0}).numel() == 0);
  BOOST_TEST(from_memory(static_cast<float*>(nullptr), {int64_t{1} << 40, 0, int64_t{1} << 40}).numel() == 0);
  // Strides of axes with one size are never followed, whatever they are.
  BOOST_TEST(from_memory(n.data(), {1, 8}, {-64, 1}, DType::i64).is_contiguous());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_a_tensor_is_rejected_and_not_released) {
  float data[6] = {};
  const Counter counter;
  const auto rejects = [&](const Shape& shape, const Strides& strides, const std::string& part, void* memory) {
    BOOST_TEST(throws_with([&] { from_memory(memory, shape, strides, DType::f32, counter.release()); }, part));
  };
  rejects({2, 3}, {3}, "[from_memory] needs one stride per axis of (2, 3), got (3)", data);
  rejects({2, 3}, {-3, 1}, "stride -3 of axis 0 is negative", data);
  rejects({2, 3}, {}, "a null pointer has no elements, and (2, 3) has 6", nullptr);
  rejects({2}, {}, "the address is no multiple of 4", reinterpret_cast<char*>(data) + 2);
  rejects({-2}, {}, "a size is negative", data);
  rejects({int64_t{1} << 40, int64_t{1} << 40}, {}, "does not fit 63 bits", data);
  rejects({int64_t{1} << 61}, {}, "is larger than any memory", data);
  rejects({3, 2}, {INT64_MAX / 2, 1}, "is larger than any memory", data);
  rejects({int64_t{1} << 58}, {}, "goes beyond the last address", reinterpret_cast<void*>(UINTPTR_MAX - 7));
  BOOST_TEST(throws_with([&] { from_memory(data, {2}, {}, DType::f32, counter.release(), kMeta); },
                         "the device meta has no memory"));
  BOOST_TEST(counter.count() == 0);
}

BOOST_AUTO_TEST_CASE(the_last_handle_releases_once) {
  const Counter counter;
  float data[6] = {1, 2, 3, 4, 5, 6};
  {
    Tensor view;
    {
      const Tensor x = from_memory(data, {2, 3}, counter.release());
      const Tensor other = x;
      view = x.transposed().sliced(0, 1, 2);
    }
    BOOST_TEST(counter.count() == 0);
    BOOST_TEST(is_close(values(view), {2, 5}, 0));
  }
  BOOST_TEST(counter.count() == 1);
  from_memory(data, {0}, counter.release());
  BOOST_TEST(counter.count() == 2);

  auto owner = std::make_shared<std::vector<float>>(3, 2.0f);
  const std::weak_ptr<std::vector<float>> alive = owner;
  Tensor x = from_memory(owner->data(), {3}, [owner] {});
  owner.reset();
  BOOST_TEST(!alive.expired());
  BOOST_TEST(is_close(values(x), {2, 2, 2}, 0));
  x = Tensor();
  BOOST_TEST(alive.expired());
}

BOOST_AUTO_TEST_CASE(threads_that_drop_handles_release_once) {
  const Counter counter;
  float data[8] = {};
  for (int round = 0; round < 200; ++round) {
    Tensor x = from_memory(data, {8}, counter.release());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([mine = x] {
        Tensor copy = mine;
        copy = copy.sliced(0, 1, 3);
      });
    x = Tensor();
    for (std::thread& thread : threads) thread.join();
    BOOST_REQUIRE(counter.count() == round + 1);
  }
}

BOOST_AUTO_TEST_CASE(memory_for_reading_cannot_be_written) {
  const std::vector<float> data{1, 2, 3};
  Tensor x = from_memory(data.data(), {3});
  for (const auto& write : std::initializer_list<std::function<void()>>{
           [&] { x.fill(0); }, [&] { x.copy_(zeros({3})); }, [&] { x.add_(full({3}, 1)); }, [&] { x.mutable_raw(); },
           [&] { x.mutable_data<float>(); }, [&] { as_mutable_span<float>(x); }, [&] { x.sliced(0, 1, 2).fill(0); }})
    BOOST_TEST(throws_with(write, "the memory of this tensor is read-only"));
  BOOST_TEST(throws_with([&] { x.fill(0); }, "[fill]"));
  BOOST_TEST(is_close(values(x), {1, 2, 3}, 0));
  Tensor mine = x.clone();
  mine.fill(4);
  BOOST_TEST(is_close(values(mine), {4, 4, 4}, 0));
}

BOOST_AUTO_TEST_CASE(memory_of_others_is_not_counted) {
  const int64_t before = memory_stats(kCpu).current, by_use = memory_by_use(kCpu).current[0];
  std::vector<float> data(1 << 20);
  Tensor x = from_memory(data.data(), {1 << 20});
  count_as(x, MemoryUse::weights);
  BOOST_TEST(memory_stats(kCpu).current == before);
  BOOST_TEST(memory_by_use(kCpu).current[0] == by_use);
  BOOST_TEST(x.storage().bytes() == 4 << 20);
}

BOOST_AUTO_TEST_CASE(spans_in) {
  std::array<double, 4> four{1, 2, 3, 4};
  const std::vector<float> two{5, 6};
  BOOST_TEST(is_close(values(from_span(std::span(four), {2, 2})), {1, 2, 3, 4}, 0));
  const Tensor x = from_span(std::span(two), {2});
  BOOST_TEST((x.dtype() == DType::f32));
  BOOST_TEST((x.data<float>() != two.data()));
  BOOST_TEST(from_span(std::span<float>(), {0, 3}).numel() == 0);
  BOOST_TEST(throws_with([&] { from_span(std::span(two), {3}); }, "[from_span] 2 values do not fill shape (3)"));
}

BOOST_AUTO_TEST_CASE(spans_out) {
  Tensor x = from_values({1, 2, 3, 4, 5, 6}, {2, 3});
  double sum = 0;
  for (const float value : as_span<float>(x)) sum += value;
  BOOST_TEST(sum == 21);
  const uint32_t version = x.storage().version();
  as_mutable_span<float>(x)[5] = 60;
  BOOST_TEST(x.storage().version() == version + 1);
  BOOST_TEST(is_close(values(x), {1, 2, 3, 4, 5, 60}, 0));
  const Tensor row = x.sliced(0, 1, 2), across = x.transposed(), none = zeros({0, 2}).transposed();
  BOOST_TEST(as_span<float>(row)[0] == 4.0f);
  BOOST_TEST(as_span<float>(none).empty());
  BOOST_TEST(throws_with([&] { as_span<float>(across); }, "[as_span] the tensor (3, 2) has strides (1, 3)"));
  BOOST_TEST(throws_with([&] { as_span<double>(row); }, "[data] the tensor holds f32, not f64"));
  const Tensor nowhere = zeros({2}, DType::f32, kMeta);
  BOOST_TEST(throws_with([&] { as_span<float>(nowhere); }, "the tensor is on meta"));
}

BOOST_AUTO_TEST_SUITE_END()
