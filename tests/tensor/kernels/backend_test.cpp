#include "braid/tensor/kernels/backend.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(backend_table)

namespace {
std::vector<std::string> story;  // what happened around kernels
void outer(In x, Out y);
void inner(In, Out) { story.push_back(std::string("in ") + detail::running_kernel()); }
constexpr Backend kNested{.name = "nested", .softmax = {.forward = outer, .log_forward = inner}};
void outer(In x, Out y) {
  kNested.softmax.log_forward(x, y);
  inner(x, y);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_missing_kernel_says_its_name) {
  constexpr Backend empty_table{.name = "nothing"};
  Tensor x = zeros({1});
  BOOST_TEST(throws_with([&] { empty_table.softmax.forward(x, x); }, "[softmax] no such kernel"));
  BOOST_TEST(!empty_table.softmax.forward);
  BOOST_TEST(bool(cpu_backend().softmax.forward));
  BOOST_TEST(std::string(empty_table.norm.rms_forward.name()) == "rms_norm");
}

BOOST_AUTO_TEST_CASE(running_kernels_are_known_and_can_be_watched) {
  Tensor x = zeros({1});
  kNested.softmax.forward(x, x);
  BOOST_TEST(story == (std::vector<std::string>{"in log_softmax", "in softmax"}), boost::test_tools::per_element());
  BOOST_TEST(!detail::running_kernel());
  story.clear();
  detail::set_kernel_observer({[](const char* name) { story.push_back(name); }, [] { story.push_back("end"); }});
  kNested.softmax.log_forward(x, x);
  detail::set_kernel_observer({nullptr, nullptr});
  kNested.softmax.log_forward(x, x);
  BOOST_TEST(story == (std::vector<std::string>{"log_softmax", "in log_softmax", "end", "in log_softmax"}),
             boost::test_tools::per_element());
}

// A kernel inside another one counts once, and what watched kernels before watches them again.
BOOST_AUTO_TEST_CASE(calls_are_timed_by_name) {
  const auto times = cpu_backend().stream.launch_times([] {
    Tensor x = zeros({1});
    kNested.softmax.log_forward(x, x);
    kNested.softmax.forward(x, x);
    kNested.softmax.forward(x, x);
  });
  const auto of = [&](const std::string& name) {
    const auto at = std::ranges::find(times, name, &LaunchTime::name);
    BOOST_REQUIRE_MESSAGE(at != times.end(), name);
    BOOST_TEST(at->milliseconds >= 0);
    return at->launches;
  };
  BOOST_TEST(of("log_softmax") == 3);
  BOOST_TEST(of("softmax") == 2);
  story.clear();
  const detail::ObserveKernels observe({[](const char* name) { story.push_back(name); }, [] {}});
  cpu_backend().stream.launch_times([] {});
  Tensor x = zeros({1});
  kNested.softmax.log_forward(x, x);
  BOOST_TEST((std::ranges::count(story, "log_softmax") == 1));
}

BOOST_AUTO_TEST_CASE(visibility_by_its_definition) {
  for (int64_t window : {0, 1, 3}) {
    for (int64_t offset : {-2, 0, 4}) {
      for (bool causal : {true, false}) {
        AttentionMask v{causal, causal ? window : 0, offset};
        for (int64_t t = 0; t < 6; ++t) {
          for (int64_t s = 0; s < 7; ++s) {
            bool want = !causal || (s <= t + offset && (window == 0 || s > t + offset - window));
            bool got = s >= v.first(t) && s < v.end(t, 7);
            BOOST_TEST(got == want);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
