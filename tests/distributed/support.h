// Checks that run on every rank at once, on threads or under MPI. Boost's macros are for one thread, so a rank reports
// a failure by throwing; run_thread_ranks() and mpirun pass it on.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"
#include "tests/support/random.h"

namespace braid::test {

inline void expect(bool ok, const std::string& what) {
  if (!ok) fail(ErrorKind::misuse, "not as expected: " + what);
}

inline void expect_equal(const Tensor& got, const Tensor& want, const std::string& what) {
  expect(got.shape() == want.shape(), what + ": shape " + str(got.shape()) + ", expected " + str(want.shape()));
  expect(got.dtype() == want.dtype(), what + ": type " + str(got.dtype()) + ", expected " + str(want.dtype()));
  std::vector<double> g = got.to_vector<double>(), w = want.to_vector<double>();
  for (size_t i = 0; i < g.size(); ++i) {
    expect(g[i] == w[i], what + ": entry " + std::to_string(i) + " is " + std::to_string(g[i]) + ", expected " +
                             std::to_string(w[i]));
  }
}

// max |got - want| <= tolerance * max |want|; NaN fails.
inline void expect_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance,
                         const std::string& what) {
  expect(got.size() == want.size(),
         what + ": " + std::to_string(got.size()) + " values, expected " + std::to_string(want.size()));
  double largest = 0, worst = 0;
  bool ok = true;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::fmax(largest, std::fabs(want[i]));
    double difference = std::fabs(got[i] - want[i]);
    ok = ok && !std::isnan(difference);
    worst = std::fmax(worst, difference);
  }
  expect(ok && worst <= tolerance * largest, what + ": largest difference 10^" +
                                                 std::to_string(std::log10(worst / (largest > 0 ? largest : 1))) +
                                                 " of the largest value, 10^" + std::to_string(std::log10(largest)));
}
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  expect(got.shape() == want.shape(), what + ": shape " + str(got.shape()) + ", expected " + str(want.shape()));
  expect_close(got.to_vector<double>(), want.to_vector<double>(), tolerance, what);
}

// Runs f and expects an Error of this kind whose message contains `part`.
template <class F>
void expect_error(F&& f, ErrorKind kind, const std::string& part) {
  try {
    f();
  } catch (const Error& e) {
    expect(e.kind() == kind && std::string(e.what()).find(part) != std::string::npos,
           std::string("the error says '") + e.what() + "', expected '" + part + "'");
    return;
  }
  expect(false, "nothing was thrown, expected an error with '" + part + "'");
}

// The sets of checks. Each runs on any number of ranks.
void check_collectives(const dist::Communicator& world);
void check_mappings(const dist::Communicator& world);
// Tensors of a device give what those of the CPU give, bit for bit; with or without a transport of `world` for the
// device.
void check_device(const dist::Communicator& world, Device device);

}  // namespace braid::test
