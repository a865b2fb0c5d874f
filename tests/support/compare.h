// The one comparison of floating-point results: NaN-safe, and its message says where.
#pragma once
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::test {

// max |got - want| <= tolerance * max |want| (and equal sizes). Infinities must be equal; any NaN fails. `at_least`
// stands in for max |want| where that is smaller: for results that vanish except for rounding.
inline boost::test_tools::assertion_result is_close(const std::vector<double>& got, const std::vector<double>& want,
                                                    double tolerance, double at_least = 0) {
  boost::test_tools::assertion_result result(true);
  if (got.size() != want.size()) {
    result = false;
    result.message() << got.size() << " values, expected " << want.size();
    return result;
  }
  double largest = at_least, worst = 0;
  for (double v : want) {
    if (std::isfinite(v)) largest = std::fmax(largest, std::fabs(v));
  }
  size_t at = 0, bad = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    double diff = got[i] == want[i] ? 0.0 : std::fabs(got[i] - want[i]);
    if (!(diff <= tolerance * largest)) ++bad;
    if (!(diff <= worst)) {
      worst = diff;
      at = i;
    }
  }
  if (bad > 0) {
    result = false;
    result.message() << bad << " of " << got.size() << " values differ by more than " << tolerance << " x " << largest
                     << "; the worst at " << at << ": got " << got[at] << ", expected " << want[at] << " (relative "
                     << worst / largest << ")";
  }
  return result;
}

inline boost::test_tools::assertion_result is_close(const Tensor& got, const Tensor& want, double tolerance) {
  if (!(got.shape() == want.shape())) {
    boost::test_tools::assertion_result result(false);
    result.message() << "shape " << str(got.shape()) << ", expected " << str(want.shape());
    return result;
  }
  return is_close(got.to_vector<double>(), want.to_vector<double>(), tolerance);
}

// Runs f and checks that it throws a braid::Error whose message contains `part`.
template <class F>
boost::test_tools::assertion_result throws_with(F&& f, const std::string& part) {
  boost::test_tools::assertion_result result(false);
  try {
    f();
    result.message() << "nothing was thrown; expected an error with '" << part << "'";
  } catch (const Error& e) {
    if (std::string(e.what()).find(part) != std::string::npos) return boost::test_tools::assertion_result(true);
    result.message() << "the error says '" << e.what() << "', expected '" << part << "'";
  }
  return result;
}

}  // namespace braid::test
