// What a build without LAPACK has in the place of linalg.cpp.
#include "braid/tensor/linalg/linalg.h"

namespace braid::linalg {

namespace {
[[noreturn]] void missing(const char* op) {
  fail(op, "this build of Braid has no LAPACK: install liblapack-dev, configure with BRAID_LAPACK=ON and build again");
}
}  // namespace

bool available() { return false; }
void cholesky(const char* op, In, Out) { missing(op); }
void solve(const char* op, In, In, Out) { missing(op); }
void solve_triangular(const char* op, In, In, bool, Out) { missing(op); }
void inverse(const char* op, In, Out) { missing(op); }
void slogdet(const char* op, In, Out, Out) { missing(op); }
void qr(const char* op, In, Out, Out) { missing(op); }
void eigh(const char* op, In, Out, Out) { missing(op); }
void svd(const char* op, In, Out, Out, Out) { missing(op); }

}  // namespace braid::linalg
