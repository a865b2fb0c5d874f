// What LAPACK's and cuSOLVER's results have in common: the errors, and the determinant of a factorised matrix.
#pragma once
#include <cmath>
#include <limits>

#include "braid/tensor/kernels/kernel.h"

namespace braid::linalg {

[[noreturn]] inline void fail_singular(const char* op, int64_t matrix, int64_t pivot) {
  fail(op, str("matrix ", matrix, " is singular: pivot ", pivot, " is 0; pinv() takes such matrices"));
}
inline void check_finite(const char* op, int64_t matrix, bool finite) {
  check(finite, op, [&] { return str("matrix ", matrix, " holds NaN or infinity; see isfinite()"); });
}
inline void check_definite(const char* op, int64_t matrix, bool good) {
  check(good, op, [&] {
    return str("matrix ", matrix, " is not positive definite; add a small multiple of eye(n), or see eigh()");
  });
}
inline void check_converged(const char* op, int64_t matrix, int64_t info) {
  check(info == 0, op, [&] { return str("matrix ", matrix, " did not converge"); });
}

template <class T>
struct SignAndLog {
  T sign, log;
};
// The determinant of a, P a = l u: u (n, n) has its diagonal elements `step` apart; row k was exchanged with row
// pivots[k] - 1.
template <class T, class P>
SignAndLog<T> sign_and_log(const T* diagonal, int64_t step, const P* pivots, int64_t n) {
  T sign = 1, sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    const T pivot = diagonal[k * step];
    if (pivots[k] != k + 1) sign = -sign;
    sum += std::log(std::fabs(pivot));
    sign = pivot < 0 ? -sign : pivot > 0 ? sign : sign * pivot;  // 0 and NaN stay
  }
  return {sign, sign == 0 ? -std::numeric_limits<T>::infinity() : sum};
}

}  // namespace braid::linalg
