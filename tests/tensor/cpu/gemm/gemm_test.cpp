#include "braid/tensor/cpu/gemm/gemm.h"

#include <dlfcn.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "braid/tensor/cpu/instruction_sets.h"

using namespace braid;
using namespace braid::cpu;

BOOST_AUTO_TEST_SUITE(gemm_test)

namespace {

// Calls each(kernel, "set/kernel") for every kernel of every instruction set of this processor.
template <class T, class Each>
void for_kernels(Each&& each) {
  for (const InstructionSet* set : instruction_sets())
    for (const auto& kernel : set->products().template of<T>().kernels)
      each(kernel, std::string(set->name) + "/" + kernel.name);
}

template <class T>
std::vector<T> random_values(size_t n, uint64_t seed) {
  std::vector<T> x(n);
  uint64_t state = seed * 2654435761u + 88172645463325252u;
  for (T& v : x) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    v = T(double(state >> 11) / double(uint64_t{1} << 53) - 0.5);
  }
  return x;
}

// One product with rows longer than needed, so that a kernel which ignores a stride or writes beyond its columns is
// seen.
template <class T>
struct Case {
  bool ta, tb;
  int64_t m, n, k;
  T alpha = 1, beta = 0;
  int64_t gap = 0;

  int64_t lda() const { return (ta ? m : k) + gap; }
  int64_t ldb() const { return (tb ? k : n) + gap; }
  int64_t ldc() const { return n + gap; }
  size_t size_a() const { return size_t((ta ? k : m) * lda()); }
  size_t size_b() const { return size_t((tb ? n : k) * ldb()); }
  size_t size_c() const { return size_t(m * ldc()); }
  Gemm<T> gemm(const T* a, const T* b, T* c) const {
    return {ta, tb, m, n, k, alpha, a, lda(), b, ldb(), beta, c, ldc()};
  }
  std::string name() const {
    return std::to_string(m) + " x " + std::to_string(k) + (ta ? " (stored transposed)" : "") + " by " +
           std::to_string(k) + " x " + std::to_string(n) + (tb ? " (stored transposed)" : "") + ", alpha " +
           std::to_string(alpha) + ", beta " + std::to_string(beta) + ", gap " + std::to_string(gap);
  }
};

// The product by its definition, in double, with the error that rounding may cause: |alpha| sum |a||b| + |beta c|.
template <class T>
void check_against_loops(const Case<T>& x, const std::vector<T>& a, const std::vector<T>& b,
                         const std::vector<T>& before, const std::vector<T>& after, const std::string& kernel) {
  const double eps = double(std::numeric_limits<T>::epsilon());
  int64_t wrong = 0, touched = 0;
  for (int64_t i = 0; i < x.m; ++i)
    for (int64_t j = 0; j < x.ldc(); ++j) {
      const size_t at = size_t(i * x.ldc() + j);
      if (j >= x.n) {
        touched += before[at] != after[at];
        continue;
      }
      double sum = 0, size = 0;
      for (int64_t p = 0; p < x.k; ++p) {
        const double product = double(a[size_t(x.ta ? p * x.lda() + i : i * x.lda() + p)]) *
                               double(b[size_t(x.tb ? j * x.ldb() + p : p * x.ldb() + j)]);
        sum += product, size += std::abs(product);
      }
      double expected = double(x.alpha) * sum, scale = std::abs(double(x.alpha)) * size;
      if (x.beta != T(0)) expected += double(x.beta) * double(before[at]), scale += std::abs(expected) + 1;
      const double bound = eps * (4 + 2 * std::sqrt(double(x.k))) * scale;
      if (!(std::abs(double(after[at]) - expected) <= bound)) ++wrong;
    }
  BOOST_CHECK_MESSAGE(wrong == 0, kernel << ": " << wrong << " wrong values in " << x.name());
  BOOST_CHECK_MESSAGE(touched == 0,
                      kernel << ": " << touched << " values beyond the rows of c changed in " << x.name());
}

template <class T>
void check_case(const Case<T>& x) {
  const auto a = random_values<T>(x.size_a(), 1), b = random_values<T>(x.size_b(), 2);
  auto before = random_values<T>(x.size_c(), 3);
  if (x.beta == T(0))  // must be overwritten without being read
    for (int64_t i = 0; i < x.m; ++i)
      for (int64_t j = 0; j < x.n; ++j) before[size_t(i * x.ldc() + j)] = std::numeric_limits<T>::quiet_NaN();
  for_kernels<T>([&](const GemmKernel<T>& kernel, const std::string& name) {
    auto c = before;
    gemm_with(kernel, x.gemm(a.data(), b.data(), c.data()));
    check_against_loops(x, a, b, before, c, name);
  });
  auto c = before;
  gemm(x.ta, x.tb, x.m, x.n, x.k, x.alpha, a.data(), x.lda(), b.data(), x.ldb(), x.beta, c.data(), x.ldc());
  check_against_loops(x, a, b, before, c, "chosen");
}

struct Threads {
  int before = threads();
  ~Threads() { set_threads(before); }
};

template <class T>
std::vector<T> product(const Case<T>& x, const GemmKernel<T>* kernel, size_t shift = 0) {
  auto a = random_values<T>(x.size_a(), 1), b = random_values<T>(x.size_b(), 2);
  std::vector<T> c(x.size_c() + shift, T(0.25));
  a.insert(a.begin(), shift, T(7)), b.insert(b.begin(), shift, T(7));
  const Gemm<T> g = x.gemm(a.data() + shift, b.data() + shift, c.data() + shift);
  if (kernel != nullptr)
    gemm_with(*kernel, g);
  else
    gemm(g.ta, g.tb, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb, g.beta, g.c, g.ldc);
  c.erase(c.begin(), c.begin() + std::ptrdiff_t(shift));
  return c;
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

template <class T>
void check_repeatable() {
  const Threads keep;
  const Case<T> cases[] = {{false, false, 300, 260, 130}, {false, true, 600, 97, 65},  {true, false, 130, 70, 1500},
                           {true, false, 260, 300, 2100}, {true, true, 100, 200, 90},  {false, true, 1, 700, 256},
                           {true, false, 90, 110, 4200},  {false, true, 1, 3000, 900}, {false, false, 700, 1, 256},
                           {false, true, 1, 1, 1000},     {false, true, 8, 900, 300},  {false, false, 8, 300, 33}};
  for (const Case<T>& x : cases) {
    const auto check_kernel = [&](const GemmKernel<T>* kernel, const std::string& name) {
      set_threads(1);
      const auto one = product(x, kernel);
      for (int n : {1, 2, 3}) {
        set_threads(n);
        BOOST_CHECK_MESSAGE(same_bits(one, product(x, kernel)),
                            name << " differs with " << n << " threads in " << x.name());
      }
      if (kernel == nullptr || kernel->name == std::string("packed"))
        for (size_t shift : {1, 3, 5})
          BOOST_CHECK_MESSAGE(same_bits(one, product(x, kernel, shift)),
                              name << ": the bits depend on the address of the matrices in " << x.name());
    };
    check_kernel(nullptr, "chosen");
    for_kernels<T>([&](const GemmKernel<T>& kernel, const std::string& name) { check_kernel(&kernel, name); });
  }
}

}  // namespace

using Types = std::tuple<float, double>;

BOOST_AUTO_TEST_CASE_TEMPLATE(every_kernel_agrees_with_plain_loops_for_all_transposes_and_sizes, T, Types) {
  const int64_t sizes[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 66, 97};
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (int64_t m : sizes)
        for (int64_t n : sizes)
          for (int64_t k : {int64_t{1}, int64_t{4}, int64_t{17}, int64_t{64}, int64_t{131}})
            check_case<T>({ta, tb, m, n, k, T(1), T(0), (m + n + k) % 3});
}

BOOST_AUTO_TEST_CASE_TEMPLATE(products_that_are_cut_into_tiles, T, Types) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      check_case<T>({ta, tb, 517, 129, 70, T(1), T(0), 3});
      check_case<T>({ta, tb, 130, 1100, 33, T(1), T(1), 0});
      check_case<T>({ta, tb, 70, 90, 1030, T(1), T(0), 1});
      check_case<T>({ta, tb, 3, 1030, 600, T(1), T(0), 0});
      for (T beta : {T(0), T(1), T(0.5)}) check_case<T>({ta, tb, 40, 50, 4100, T(-0.5), beta, 3});  // slices of depth
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(alpha_and_beta, T, Types) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (T alpha : {T(1), T(-0.5), T(0)})
        for (T beta : {T(0), T(1), T(0.75)})
          for (int64_t m : {1, 7, 40})
            for (int64_t n : {1, 9, 50}) check_case<T>({ta, tb, m, n, 19, alpha, beta, 2});
}

BOOST_AUTO_TEST_CASE_TEMPLATE(sizes_of_zero, T, Types) {
  for (T beta : {T(0), T(1), T(0.5)}) check_case<T>({false, false, 6, 5, 0, T(1), beta, 1});
  T untouched = 7;
  gemm<T>(false, false, 0, 5, 3, T(1), nullptr, 3, nullptr, 5, T(0), &untouched, 5);
  gemm<T>(false, false, 5, 0, 3, T(1), nullptr, 3, nullptr, 1, T(0), &untouched, 1);
  gemm_batched<T>(
      0,
      [&](int64_t) {
        return GemmOperands<T>{nullptr, nullptr, &untouched};
      },
      false, false, 1, 1, 1, T(1), 1, 1, T(0), 1);
  BOOST_TEST(untouched == T(7));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(batches_use_the_operands_of_each_product, T, Types) {
  // Many tiny products, and few large ones; b is shared by pairs.
  const Case<T> cases[] = {{false, false, 4, 40, 8},
                           {false, true, 8, 4, 70},
                           {true, false, 150, 140, 90},
                           {true, false, 110, 40, 4100, 1, 0, 2}};
  for (const Case<T>& x : cases) {
    const int64_t count = x.m > 100 ? 3 : 301;
    const auto a = random_values<T>(x.size_a() * size_t(count), 4), b = random_values<T>(x.size_b() * size_t(count), 5);
    std::vector<T> c(x.size_c() * size_t(count));
    gemm_batched<T>(
        count,
        [&](int64_t i) {
          return GemmOperands<T>{&a[size_t(i) * x.size_a()], &b[size_t(i / 2) * x.size_b()],
                                 &c[size_t(i) * x.size_c()]};
        },
        x.ta, x.tb, x.m, x.n, x.k, x.alpha, x.lda(), x.ldb(), x.beta, x.ldc());
    for (int64_t i = 0; i < count; ++i) {
      const auto part = [&](const std::vector<T>& all, int64_t at, size_t size) {
        return std::vector<T>(all.begin() + std::ptrdiff_t(size_t(at) * size),
                              all.begin() + std::ptrdiff_t(size_t(at + 1) * size));
      };
      const auto ci = part(c, i, x.size_c());
      check_against_loops(x, part(a, i, x.size_a()), part(b, i / 2, x.size_b()), ci, ci, "batched");
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(same_bits_for_any_threads_and_addresses, T, Types) { check_repeatable<T>(); }

BOOST_AUTO_TEST_CASE_TEMPLATE(a_nan_reaches_exactly_its_row_and_column, T, Types) {
  const Case<T> x{false, false, 20, 70, 30};
  for_kernels<T>([&](const GemmKernel<T>& kernel, const std::string& name) {
    auto a = random_values<T>(x.size_a(), 1);
    const auto b = random_values<T>(x.size_b(), 2);
    std::vector<T> c(x.size_c());
    a[size_t(11 * x.k + 29)] = std::numeric_limits<T>::quiet_NaN();
    gemm_with(kernel, x.gemm(a.data(), b.data(), c.data()));
    for (int64_t i = 0; i < x.m; ++i)
      for (int64_t j = 0; j < x.n; ++j)
        BOOST_REQUIRE_MESSAGE(std::isnan(c[size_t(i * x.n + j)]) == (i == 11), name << ": element " << i << ", " << j);
  });
}

// More columns than are packed at once, of B in both orders, and a start of every row.
BOOST_AUTO_TEST_CASE_TEMPLATE(wide_products_in_pieces_of_columns, T, Types) {
  for (bool tb : {false, true}) {
    check_case<T>({false, tb, 100, 1100, 2100, T(1), T(1)});
    const Case<T> x{false, tb, 100, 1100, 2100, T(1), T(1)};
    const auto a = random_values<T>(x.size_a(), 1), b = random_values<T>(x.size_b(), 2),
               start = random_values<T>(size_t(x.n), 4);
    std::vector<T> before;
    for (int64_t i = 0; i < x.m; ++i) before.insert(before.end(), start.begin(), start.end());
    std::vector<T> c(x.size_c(), std::numeric_limits<T>::quiet_NaN());
    cpu::gemm(x.ta, x.tb, x.m, x.n, x.k, x.alpha, a.data(), x.lda(), b.data(), x.ldb(), x.beta, c.data(), x.ldc(),
              start.data());
    check_against_loops(x, a, b, before, c, "with a start");
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(wide_products_have_the_bits_of_some_columns_alone, T, Types) {
  for (bool tb : {false, true}) {
    const Case<T> x{false, tb, 180, 2200, 1000};
    const auto a = random_values<T>(x.size_a(), 1), b = random_values<T>(x.size_b(), 2);
    for_kernels<T>([&](const GemmKernel<T>& kernel, const std::string& name) {
      if (kernel.name != std::string("packed")) return;
      std::vector<T> whole(x.size_c()), parts(x.size_c());
      kernel.in_parallel(x.gemm(a.data(), b.data(), whole.data()));
      for (const auto& [column, columns] : {std::pair<int64_t, int64_t>{0, 700}, {700, 801}, {1501, 699}}) {
        Gemm<T> g = x.gemm(a.data(), b.data(), parts.data());
        g.n = columns, g.b += tb ? column * g.ldb : column, g.c += column;
        kernel.run(g);
      }
      BOOST_TEST(same_bits(whole, parts), name);
    });
  }
}

// A small C goes through a deep product several times, some slices each; a large one, whose first rows these are, does
// not.
BOOST_AUTO_TEST_CASE_TEMPLATE(deep_products_in_pieces_of_depth, T, Types) {
  const Case<T> x{true, false, 100, 260, 4000, T(0.7), T(0.3), 3},
      large{true, false, 1600, 260, 4000, T(0.7), T(0.3), 3};
  const auto a = random_values<T>(large.size_a(), 1), b = random_values<T>(x.size_b(), 2),
             before = random_values<T>(large.size_c(), 3), start = random_values<T>(size_t(x.n), 4);
  std::vector<T> rows(x.size_a());
  for (int64_t p = 0; p < x.k; ++p) std::copy_n(a.begin() + p * large.lda(), x.m, rows.begin() + p * x.lda());
  for_kernels<T>([&](const GemmKernel<T>& kernel, const std::string& name) {
    if (kernel.name != std::string("packed")) return;
    for (const bool with_start : {false, true}) {
      const auto product = [&](const Case<T>& y, const std::vector<T>& of) {
        std::vector<T> c = before;
        Gemm<T> g = y.gemm(of.data(), b.data(), c.data());
        if (with_start) g.start = start.data(), g.beta = 0;
        kernel.in_parallel(g);
        c.resize(x.size_c());
        return c;
      };
      Case<T> as_loops = x;
      std::vector<T> c0(before.begin(), before.begin() + std::ptrdiff_t(x.size_c()));
      if (with_start) {
        as_loops.beta = 1;
        for (int64_t i = 0; i < x.m; ++i) std::copy_n(start.begin(), x.n, c0.begin() + i * x.ldc());
      }
      const std::vector<T> c = product(x, rows);
      check_against_loops(as_loops, rows, b, c0, c, name + (with_start ? " with a start" : ""));
      BOOST_TEST(same_bits(c, product(large, a)), name);
    }
  });
}

// An element depends neither on the size of C nor on its place in it, so C may be cut anywhere.
BOOST_AUTO_TEST_CASE_TEMPLATE(packed_products_have_the_same_bits_in_any_tile, T, Types) {
  const Case<T> x{false, true, 61, 83, 1700, T(0.7), T(0.3)};  // several slices of depth
  const auto a = random_values<T>(x.size_a(), 1), b = random_values<T>(x.size_b(), 2);
  const auto before = random_values<T>(x.size_c(), 3);
  for_kernels<T>([&](const GemmKernel<T>& kernel, const std::string& name) {
    if (kernel.name != std::string("packed")) return;
    auto whole = before;
    const Gemm<T> g = x.gemm(a.data(), b.data(), whole.data());
    kernel.run(g);
    auto shared = before;
    Gemm<T> on_threads = g;
    on_threads.c = shared.data();
    kernel.in_parallel(on_threads);
    BOOST_TEST(same_bits(whole, shared), name << " on all threads");
    for (const auto& [i, m, j, n] :
         {std::array<int64_t, 4>{0, 1, 0, 1}, {7, 13, 5, 31}, {60, 1, 16, 67}, {3, 58, 82, 1}}) {
      auto part = before;
      Gemm<T> tile = g;
      tile.m = m, tile.n = n, tile.a += i * g.lda, tile.b += j * g.ldb, tile.c = part.data() + i * g.ldc + j;
      kernel.run(tile);
      for (int64_t r = 0; r < m; ++r)
        BOOST_TEST(std::memcmp(tile.c + r * g.ldc, &whole[size_t((i + r) * g.ldc + j)], size_t(n) * sizeof(T)) == 0,
                   name << ", row " << i + r << ", columns from " << j);
    }
  });
}

// oneDNN brings an OpenMP runtime with it. A product used to leave the calling thread with one OpenMP thread.
BOOST_AUTO_TEST_CASE(the_openmp_threads_of_the_program_stay) {
  const auto threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (threads == nullptr || set == nullptr) return;  // a build without OpenMP
  const int before = threads();
  for (int n : {1, 3}) {
    set(n);
    const std::vector<float> a(256 * 256, 1), b = a;
    std::vector<float> c(a.size());
    gemm<float>(false, false, 256, 256, 256, 1, a.data(), 256, b.data(), 256, 0, c.data(), 256);
    BOOST_TEST(c[0] == 256);
    BOOST_TEST(threads() == n);
  }
  set(before);
}

BOOST_AUTO_TEST_CASE(each_shape_class_has_its_kernel) {
  for (const InstructionSet* set : instruction_sets()) {
    BOOST_TEST_CONTEXT(set->name) {
      const GemmTable<float>& f32 = set->products().f32;
      const auto name = [](const auto& table, bool tb, int64_t m, int64_t n, int64_t k) {
        return std::string(table.choose(tb, m, n, k).name);
      };
      BOOST_TEST(name(f32, true, 1, 768, 256) == "vector");
      BOOST_TEST(name(f32, true, 8, 768, 256) == "native");
      BOOST_TEST(name(f32, false, 4, 512, 8) == "native");
      const bool packs = set->products().packs, dnnl = f32.kernels.back().name == std::string("dnnl");
      const std::string own = packs ? "packed" : "native", large = name(f32, true, 4096, 768, 256);
      BOOST_TEST((large == own || (dnnl && large == "dnnl")));
      BOOST_TEST(name(f32, false, 768, 256, 4096) == large);
      if (set->name == "avx2") BOOST_TEST(large == "packed");
      BOOST_TEST(name(set->products().f64, false, 512, 512, 512) == own);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
