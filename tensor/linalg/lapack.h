// The routines of LAPACK that linalg.cpp calls, for float and double: potrf(...) is spotrf_ or dpotrf_. LAPACK stores
// columns one after the other: a row-major matrix is its transpose there. Arguments are those of LAPACK's manual, by
// value where it reads a scalar; a workspace is asked for and allocated here. The result is `info`: 0, or what failed.
#pragma once
#include <algorithm>
#include <vector>

namespace braid::linalg {

extern "C" {
// A character argument has its length at the end, as Fortran's compilers pass it.
#define BRAID_LAPACK(prefix, T)                                                                                    \
  void prefix##potrf_(const char*, const int*, T*, const int*, int*, size_t);                                      \
  void prefix##getrf_(const int*, const int*, T*, const int*, int*, int*);                                         \
  void prefix##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, \
                      size_t);                                                                                     \
  void prefix##getri_(const int*, T*, const int*, const int*, T*, const int*, int*);                               \
  void prefix##trtrs_(const char*, const char*, const char*, const int*, const int*, const T*, const int*, T*,     \
                      const int*, int*, size_t, size_t, size_t);                                                   \
  void prefix##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                           \
  void prefix##orgqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);         \
  void prefix##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*,  \
                      int*, size_t, size_t);                                                                       \
  void prefix##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*, \
                      const int*, int*, int*, size_t);
BRAID_LAPACK(s, float)
BRAID_LAPACK(d, double)
#undef BRAID_LAPACK
}

// Calls routine(work, length) for the length that it wants, then with a workspace of that length.
template <class T, class F>
void with_workspace(F&& routine) {
  T wanted = 0;
  routine(&wanted, -1);
  std::vector<T> work(std::max<size_t>(1, static_cast<size_t>(wanted)));
  routine(work.data(), static_cast<int>(work.size()));
}

// f(float's, double's): the routine for T.
template <class T, class S, class D>
auto chosen(S single, D twice) {
  if constexpr (std::is_same_v<T, float>)
    return single;
  else
    return twice;
}

template <class T>
int potrf(char triangle, int n, T* a) {
  int info = 0;
  chosen<T>(spotrf_, dpotrf_)(&triangle, &n, a, &n, &info, 1);
  return info;
}
template <class T>
int getrf(int n, T* a, int* pivots) {
  int info = 0;
  chosen<T>(sgetrf_, dgetrf_)(&n, &n, a, &n, pivots, &info);
  return info;
}
template <class T>
int getrs(char transposed, int n, int columns, const T* lu, const int* pivots, T* b) {
  int info = 0;
  chosen<T>(sgetrs_, dgetrs_)(&transposed, &n, &columns, lu, &n, pivots, b, &n, &info, 1);
  return info;
}
template <class T>
int getri(int n, T* lu, const int* pivots) {
  int info = 0;
  with_workspace<T>(
      [&](T* work, int length) { chosen<T>(sgetri_, dgetri_)(&n, lu, &n, pivots, work, &length, &info); });
  return info;
}
template <class T>
int trtrs(char triangle, char transposed, int n, int columns, const T* a, T* b) {
  int info = 0;
  const char diagonal = 'N';
  chosen<T>(strtrs_, dtrtrs_)(&triangle, &transposed, &diagonal, &n, &columns, a, &n, b, &n, &info, 1, 1, 1);
  return info;
}
template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  int info = 0;
  with_workspace<T>(
      [&](T* work, int length) { chosen<T>(sgeqrf_, dgeqrf_)(&m, &n, a, &m, tau, work, &length, &info); });
  return info;
}
template <class T>
int orgqr(int m, int n, T* a, const T* tau) {
  int info = 0;
  with_workspace<T>(
      [&](T* work, int length) { chosen<T>(sorgqr_, dorgqr_)(&m, &n, &n, a, &m, tau, work, &length, &info); });
  return info;
}
template <class T>
int syevd(char triangle, int n, T* a, T* w) {
  int info = 0, wanted = 0, query = -1;
  const char vectors = 'V';
  T size = 0;
  const auto routine = chosen<T>(ssyevd_, dsyevd_);
  routine(&vectors, &triangle, &n, a, &n, w, &size, &query, &wanted, &query, &info, 1, 1);
  std::vector<T> work(std::max<size_t>(1, static_cast<size_t>(size)));
  std::vector<int> integers(static_cast<size_t>(std::max(1, wanted)));
  const int length = static_cast<int>(work.size()), count = static_cast<int>(integers.size());
  routine(&vectors, &triangle, &n, a, &n, w, work.data(), &length, integers.data(), &count, &info, 1, 1);
  return info;
}
// a (m, n) is overwritten; u (m, k), s (k), vt (k, n).
template <class T>
int gesdd(int m, int n, T* a, T* s, T* u, T* vt) {
  int info = 0;
  const int k = std::min(m, n);
  const char thin = 'S';
  std::vector<int> integers(static_cast<size_t>(8 * k));
  with_workspace<T>([&](T* work, int length) {
    chosen<T>(sgesdd_, dgesdd_)(&thin, &m, &n, a, &m, s, u, &m, vt, &k, work, &length, integers.data(), &info, 1);
  });
  return info;
}

}  // namespace braid::linalg
