// Checks of exercise 11: each kernel runs with its threads in several orders, beside sums of integers in f64, which f32
// and bf16 hold exactly.
#include EXERCISE

#include <cmath>
#include <cstring>

#include "course/checks.h"

using course::Array;
using course::expect;
using course::Global;
using course::Sizes;
namespace cuda = braid::cuda;
namespace emulated = braid::emulated;

namespace {

// Integers from -4 to 4, other ones for each seed.
std::vector<float> integers(int n, int seed) {
  std::vector<float> out;
  for (int i = 0; i < n; ++i) out.push_back(static_cast<float>((i * 7 + i / 5 * 3 + seed * 11) % 9 - 4));
  return out;
}

const char* const kBarrier =
    "what one thread writes and another reads: a barrier between them, and one before the place is written again";
const char* const kUnwritten =
    "is there a barrier between write and read? did the thread that has to write there leave, or skip it at an edge?";
const char* const kMeet =
    "all threads of a block have to come to the same __syncthreads(), all lanes of a warp to the same shuffle";
const char* const kOneWriter = "each element of y is written once: by one thread, of one block";

// launch() with the threads in five orders; element i of y has to be expected(i).
void in_all_orders(const std::string& what, int size, const std::function<void(Global y)>& launch,
                   const std::function<double(int i)>& expected) {
  const char* const own = course::hint_of_case();
  const char* orders[] = {"first to last", "last to first", "a random order", "a random order", "a random order"};
  for (int order = 0; order < 5; ++order) {
    emulated::set_order(order == 0   ? emulated::Order::forward
                        : order == 1 ? emulated::Order::reverse
                                     : emulated::Order::random,
                        static_cast<uint64_t>(order));
    Array y("y", static_cast<size_t>(size));
    course::hint(order > 0 ? kBarrier : own);
    try {
      launch(y);
    } catch (const std::exception& fault) {
      const auto says = [&](const char* words) { return std::strstr(fault.what(), words) != nullptr; };
      if (says("no thread has written"))
        course::hint(kUnwritten);
      else if (says("a race"))
        course::hint(says("shared memory") ? kBarrier : kOneWriter);
      else if (says("cannot continue") && !own)
        course::hint(kMeet);
      throw;
    }
    for (int i = 0; i < size; ++i) {
      const float found = y[static_cast<size_t>(i)];
      expect(!std::isnan(found), what, ", threads from ", orders[order], ": y[", i, "] is expected to be ", expected(i),
             ", but nobody wrote it, or it was computed from memory that nobody wrote");
      expect(found == expected(i), what, ", threads from ", orders[order], ": y[", i, "]: expected ", expected(i),
             ", found ", found,
             order > 0 ? "; the orders before were right: a race, or a variable without a first value" : "");
    }
  }
  course::hint(own);
}

using Product = void (*)(Global, Global, Global, Sizes);
void check_product(const char* name, Product product, const std::vector<Sizes>& sizes, int64_t (*reads)(Sizes)) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Sizes z = sizes[i];
    const std::vector<float> left = integers(z.M * z.K, 1), right = integers(z.K * z.N, 2);
    course::hint(i != 1     ? nullptr
                 : z.K > 16 ? "right for K = 16: does each step of 16 add to the sums of those before?"
                            : "right where M = N = K: which of them is the length of a row of a, of b, of c?");
    int64_t found = 0, written = 0;
    const std::string what = course::words(name, " of (", z.M, ", ", z.K, ") and (", z.K, ", ", z.N, ")");
    in_all_orders(
        what, z.M * z.N,
        [&](Global c) {
          Array a("a", left), b("b", right);
          product(a, b, c, z);
          written = c.counters->writes;
          found = a.counters().reads + b.counters().reads;
        },
        [&](int at) {
          double sum = 0;
          for (int k = 0; k < z.K; ++k) {
            sum += static_cast<double>(left[static_cast<size_t>(at / z.N * z.K + k)]) *
                   right[static_cast<size_t>(k * z.N + at % z.N)];
          }
          return sum;
        });
    course::hint("each element of c is written once, by the thread that has its sum in a register");
    expect(written == z.M * z.N, what, ": expected ", z.M * z.N, " writes of y, found ", written);
    course::hint("count what a thread reads in a step of k, and take the rest from shared memory or a register");
    expect(found <= reads(z), what, ": expected at most ", reads(z), " reads of the GPU's memory, found ", found);
  }
}

__global__ void sum_of_lanes(Global x, Global y) {
  const int lane = static_cast<int>(threadIdx.x);
  y[lane] = exercise::warp_sum(x[lane]);
}

int64_t up(int n, int step) { return (n + step - 1) / step; }

}  // namespace

int main() {
  course::Checks check;
  check("scale: a thread per element", "the last block has threads too many: they have nothing to do", [] {
    for (const int n : {128, 300}) {
      in_all_orders(
          course::words("scale of ", n, " elements"), n,
          [&](Global y) {
            Array x("x", integers(n, 3));
            exercise::scale(3, x, y, n);
            expect(y.counters->writes == n, "expected ", n, " writes, found ", y.counters->writes);
          },
          [&](int i) { return 3.0 * integers(n, 3)[static_cast<size_t>(i)]; });
    }
  });
  check("naive: a thread per element of the product",
        "the sum of K products; row-major: element (i, k) of (M, K) lies at i K + k", [] {
          check_product("naive", exercise::naive, {{16, 16, 16}, {20, 35, 7}},
                        [](Sizes z) { return int64_t{2} * z.M * z.N * z.K; });
        });
  check("warp_sum: five shuffles", "exchange with the lane 16 away, then 8, 4, 2, 1", [] {
    uint64_t shuffles = 0;
    in_all_orders(
        "warp_sum of lanes 0 to 31", 32,
        [&](Global y) {
          std::vector<float> lanes;
          for (int i = 0; i < 32; ++i) lanes.push_back(static_cast<float>(i));
          Array x("x", lanes);
          const uint64_t before = emulated::statistics().warp_operations;
          cuda::launch(sum_of_lanes, {.block = 32}, Global(x), y);
          shuffles = emulated::statistics().warp_operations - before;
        },
        [](int) { return 496.0; });
    course::hint("after a shuffle every lane has the sum of twice as many: five are enough for 32");
    expect(shuffles == 5, "warp_sum: expected 5 shuffles, found ", shuffles);
  });
  check(
      "row_sums: warps meet in shared memory",
      "every 128th entry of the row by a thread, warp_sum() of all threads, the sums of all four warps", [] {
        for (const int columns : {128, 1, 333}) {
          course::hint(columns == 1 ? "most threads have no entry: they take part with 0, in every shuffle" : nullptr);
          const std::vector<float> values = integers(3 * columns, 4);
          in_all_orders(
              course::words("row_sums of (3, ", columns, ")"), 3,
              [&](Global y) {
                Array x("x", values);
                exercise::row_sums(x, y, 3, columns);
              },
              [&](int row) {
                double sum = 0;
                for (int j = 0; j < columns; ++j) sum += values[static_cast<size_t>(row * columns + j)];
                return sum;
              });
        }
      });
  check("tiled: a tile is read once by the block", "add over all tiles; outside of a matrix a tile is 0", [] {
    check_product("tiled", exercise::tiled, {{16, 16, 16}, {32, 16, 48}, {20, 35, 40}},
                  [](Sizes z) { return up(z.M, 16) * up(z.N, 16) * up(z.K, 16) * 512; });
  });
  check("tensor_cores: the layout of the fragments", "compare lane and register with the figure, operand by operand",
        [] {
          const uint64_t before = emulated::statistics().mma;
          check_product("tensor_cores", exercise::tensor_cores, {{16, 8, 16}, {32, 24, 48}},
                        [](Sizes z) { return up(z.M, 16) * up(z.N, 8) * up(z.K, 16) * (256 + 128); });
          const uint64_t found = emulated::statistics().mma - before, expected = 5 * (1 + 2 * 3 * 3);
          course::hint("one for each 16 of k: a warp computes its tile of 16 x 8 at once");
          expect(found == expected, "expected ", expected, " mma instructions in all, found ", found);
        });
  return check.result();
}
