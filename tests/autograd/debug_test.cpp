#include "braid/autograd/debug.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(debug_switches)

namespace {
// The switches while it lives, and the lines they wrote.
struct Watching {
  explicit Watching(const std::string& switches) : file(std::tmpfile()) { set_debug(parse_debug(switches), file); }
  ~Watching() {
    set_debug({});
    std::fclose(file);
  }
  std::string lines() const {
    std::rewind(file);
    std::string text;
    for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    return text;
  }
  std::FILE* file;
};

Tensor leaf(std::initializer_list<double> values) {
  Tensor x = from_values(values, {static_cast<int64_t>(values.size())}, DType::f64);
  return require_grad(x);
}
constexpr double kInf = std::numeric_limits<double>::infinity();
}  // namespace

BOOST_AUTO_TEST_CASE(words) {
  const Debug some = parse_debug("ops, nan"), rest = parse_debug("mem,sync,"), none = parse_debug("");
  BOOST_TEST((some.ops && some.nan && !some.mem && !some.sync && some.any()));
  BOOST_TEST((!rest.ops && !rest.nan && rest.mem && rest.sync && rest.any()));
  BOOST_TEST(!none.any());
  BOOST_TEST(throws_with(
      [] { parse_debug("ops,nam"); },
      "bad value for BRAID_DEBUG: expected some of ops,mem,nan,comm,sync, found 'nam'; did you mean 'nan'?"));
}

BOOST_AUTO_TEST_CASE(ops_are_named_forward_and_back) {
  Tensor x = leaf({1, 2});
  Watching on("ops,sync");
  backward(sum(mul(x, x)));
  const std::string lines = on.lines();
  BOOST_TEST(lines.find("mul: f64 (2)\nsum: f64 ()\n") == 0u, lines);
  BOOST_TEST(lines.find("\nsum, derivative for input 0: f64 (2)\n") != std::string::npos, lines);
  BOOST_TEST(lines.find("\nmul, derivative for input 1: f64 (2)\n") != std::string::npos, lines);
}

BOOST_AUTO_TEST_CASE(memory_after_each_op) {
  Tensor x = full({1 << 17}, 1, DType::f64);  // 1 MiB
  Watching on("mem");
  NoGrad off;
  const int64_t before = memory_stats(kCpu).current;
  Tensor y = scale(x, 2.0);
  BOOST_TEST(memory_stats(kCpu).current - before >= 1 << 20);
  char expected[64];
  std::snprintf(expected, sizeof expected, "scale: f64 (131072)  %.1f MiB in tensors, at most ",
                static_cast<double>(before + (1 << 20)) / (1 << 20));
  BOOST_TEST(on.lines().find(expected) == 0u, on.lines() << " instead of " << expected);
}

BOOST_AUTO_TEST_CASE(the_first_nan_is_named) {
  Tensor x = leaf({1, kInf, 3});
  Watching on("nan");
  Tensor fine = scale(x, 2.0);  // infinities are no mistake: masks use them
  BRAID_CHECK_FAILS(sub(fine, fine), ErrorKind::numerical, "NaN in sub: f64 (3) (BRAID_DEBUG=nan)");
  Tensor y = record("odd", full({3}, 1, DType::f64), {x}, [](const Tensor&) -> Grads {
    return {from_values({0, std::nan(""), 0}, {3}, DType::f64)};
  });
  BOOST_TEST(throws_with([&] { backward(sum(y)); }, "NaN in odd, derivative for input 0: f64 (3)"));
  BOOST_TEST(on.lines() == "");
}

BOOST_AUTO_TEST_CASE(off_is_off) {
  { Watching on("ops,mem,nan"); }
  Tensor x = leaf({kInf});
  BOOST_CHECK_NO_THROW(sub(x, x));
}

BOOST_AUTO_TEST_SUITE_END()
