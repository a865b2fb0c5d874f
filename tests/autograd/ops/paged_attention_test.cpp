// Attention against keys in blocks: its kernel against the composed meaning, and the same bits in any company.
#include "braid/autograd/paged_attention.h"

#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>

#include "braid/autograd.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(paged_attention_op)

namespace {

struct Sizes {
  int64_t G = 1, M = 4, share = 1, d = 8, q_rank = 2, k_rank = 2, block = 4, blocks = 0;
  unsigned terms = 0x3fff;  // which of the seven members of pre (low) and post (high) exist
};

// Keys in blocks, and the query rows of a call.
struct Pages {
  Pages(const Sizes& sizes, int64_t rows, uint64_t seed, DType dtype) : s(sizes) {
    const auto drawn = [&](const Shape& shape, bool present, double deviation) {
      ++stream;
      return present ? normal_tensor(shape, deviation, {seed, stream}, dtype) : Tensor();
    };
    const int64_t N = s.G * s.M, S = s.blocks * s.block;
    q = drawn({1, rows, N, s.d}, true, 1);
    k = drawn({1, S, N / s.share, s.d}, true, 1), v = drawn(k.shape(), true, 1);
    for (int stage = 0; stage < 2; ++stage) {
      const unsigned t = s.terms >> (7 * stage);
      HeadMixing& c = stage == 0 ? pre : post;
      c.base = drawn({s.G, s.M, s.M}, t & 1, 0.3);
      c.q_down = drawn({1, rows, s.G, s.q_rank, s.M}, t & 2, 0.4);
      c.q_up = drawn({1, rows, s.G, s.q_rank, s.M}, t & 2, 0.4);
      c.k_down = drawn({1, S, s.G, s.k_rank, s.M}, t & 4, 0.4);
      c.k_up = drawn({1, S, s.G, s.k_rank, s.M}, t & 4, 0.4);
      c.q_gate = drawn({1, rows, s.G, s.M}, t & 8, 0.4);
      c.k_gate = drawn({1, S, s.G, s.M}, t & 16, 0.4);
    }
  }

  static HeadMixing query_rows(HeadMixing c, int64_t begin, int64_t end) {
    for (Tensor* t : {&c.q_down, &c.q_up, &c.q_gate})
      if (*t) *t = t->sliced(1, begin, end);
    return c;
  }
  // Runs the rows [begin, end).
  Tensor run(std::span<const PagedRow> rows, AttentionImpl impl, int64_t begin, int64_t end) const {
    DcmhaOptions o;
    o.groups = s.G, o.impl = impl;
    const auto n = static_cast<size_t>(end - begin);
    return paged_attention(q.sliced(1, begin, end), k, v, query_rows(pre, begin, end), query_rows(post, begin, end),
                           {s.block, rows.subspan(static_cast<size_t>(begin), n)}, o);
  }
  Tensor run(std::span<const PagedRow> rows, AttentionImpl impl) const { return run(rows, impl, 0, q.dim(1)); }

  std::vector<Tensor*> of_keys() {  // those that there are
    std::vector<Tensor*> all{&k, &v, &pre.k_down, &pre.k_up, &pre.k_gate, &post.k_down, &post.k_up, &post.k_gate};
    std::erase_if(all, [](const Tensor* t) { return !*t; });
    return all;
  }

  Sizes s;
  Tensor q, k, v;
  HeadMixing pre, post;
  uint64_t stream = 0;
};

using Tables = std::vector<std::vector<int32_t>>;

// `sequences` tables of `columns` blocks each, all different and in no order.
Tables random_tables(std::mt19937_64& random, int64_t sequences, int64_t columns) {
  std::vector<int32_t> blocks(static_cast<size_t>(sequences * columns));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  Tables tables;
  for (auto at = blocks.begin(); at != blocks.end(); at += columns) tables.emplace_back(at, at + columns);
  return tables;
}

// Rows of some sequences, those of a sequence one after the other; windows and rows without keys among them.
std::vector<PagedRow> random_rows(std::mt19937_64& random, const Tables& tables, int64_t block, int64_t max) {
  std::vector<PagedRow> rows;
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (const std::vector<int32_t>& table : tables) {
    const int64_t longest = std::ssize(table) * block, count = std::min(longest, 1 + below(max));
    const int64_t window = below(2) ? 1 + below(longest) : 0, from = below(longest - count + 1);
    for (int64_t t = from; t < from + count; ++t)
      rows.push_back({table, window > 0 ? std::max<int64_t>(0, t + 1 - window) : 0, below(20) == 0 ? 0 : t + 1});
  }
  return rows;
}

void check_cases(int count, int64_t columns, int64_t max_rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int before = threads();
  const auto variants = cpu::attention::variants<double>();
  const auto pick = [&](std::initializer_list<int64_t> of) { return *(of.begin() + random() % of.size()); };
  for (int i = 0; i < count; ++i) {
    Sizes s;
    s.M = pick({1, 2, 3, 4, 5, 8, 17}), s.G = s.M > 5 ? 1 : pick({1, 2, 3});
    s.share = pick({1, 1, 2, 3});
    if (s.G * s.M % s.share != 0) s.share = 1;
    s.d = pick({1, 3, 8, 20}), s.q_rank = pick({1, 2, 3}), s.k_rank = pick({1, 2, 4}), s.block = pick({1, 4, 7, 16});
    s.terms = static_cast<unsigned>(random() % 4 == 0 ? 0x3fff : random() & 0x3fff);
    if (random() % 6 == 0) s.terms = 0;
    const int64_t sequences = pick({1, 2, 5});
    s.blocks = sequences * columns;
    const Tables tables = random_tables(random, sequences, columns);
    const std::vector<PagedRow> rows = random_rows(random, tables, s.block, max_rows);
    const Pages pages(s, std::ssize(rows), seed + static_cast<uint64_t>(i), DType::f64);
    BOOST_TEST_CONTEXT("case " << i << ": G " << s.G << " M " << s.M << " share " << s.share << " d " << s.d
                               << " block " << s.block << " terms " << s.terms << ", " << rows.size() << " rows") {
      BOOST_REQUIRE(cpu::attention::use_variant(variants[random() % variants.size()]->name));
      set_threads(1 + static_cast<int>(random() % 3));
      BOOST_TEST(is_close(pages.run(rows, AttentionImpl::fused).to_vector<double>(),
                          pages.run(rows, AttentionImpl::reference).to_vector<double>(), 1e-12, 0.1));
    }
  }
  cpu::attention::use_variant("");
  set_threads(before);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_kernel_is_the_composed_meaning) { check_cases(150, 6, 40, 1); }

BOOST_AUTO_TEST_CASE(several_segments_of_keys) { check_cases(8, 90, 12, 2); }

// Alone, among others, in pieces of any size, on any number of threads, and with the blocks elsewhere.
template <class T>
void check_bits(std::mt19937_64& random, Sizes sizes, int64_t columns, int64_t rows_of_one, int64_t window) {
  const int64_t block = sizes.block;
  sizes.blocks = 3 * columns;
  const Tables tables = random_tables(random, 3, columns);
  std::vector<PagedRow> rows;
  for (const auto& table : tables)
    for (int64_t t = columns * block - rows_of_one; t < columns * block; ++t)
      rows.push_back({table, window > 0 ? std::max<int64_t>(0, t + 1 - window) : 0, t + 1});
  const Pages pages(sizes, std::ssize(rows), 7, dtype_of<T>());
  set_threads(2);
  const std::vector<T> want = pages.run(rows, AttentionImpl::fused).to_vector<T>();
  for (const int n : {1, 3}) {
    set_threads(n);
    std::vector<T> got;
    for (int64_t begin = 0, end; begin < std::ssize(rows); begin = end) {
      end = std::min(std::ssize(rows), begin + 1 + static_cast<int64_t>(random() % 33));
      const std::vector<T> part = pages.run(rows, AttentionImpl::fused, begin, end).to_vector<T>();
      got.insert(got.end(), part.begin(), part.end());
    }
    BOOST_TEST(got == want);
  }
  // The same blocks in another order in memory.
  Pages moved = pages;
  std::vector<int64_t> from(static_cast<size_t>(3 * columns));
  std::iota(from.begin(), from.end(), int64_t{0});
  std::shuffle(from.begin(), from.end(), random);
  std::vector<int64_t> places;
  for (const int64_t b : from)
    for (int64_t i = 0; i < block; ++i) places.push_back(b * block + i);
  const Tensor index = from_vector(places, {std::ssize(places)});
  for (Tensor* t : moved.of_keys()) *t = index_select(t->squeezed(0), index).unsqueezed(0);
  Tables moved_tables = tables;
  for (auto& table : moved_tables)
    for (int32_t& b : table) b = static_cast<int32_t>(std::ranges::find(from, b) - from.begin());
  std::vector<PagedRow> moved_rows = rows;
  for (size_t r = 0; r < rows.size(); ++r) moved_rows[r].blocks = moved_tables[r / static_cast<size_t>(rows_of_one)];
  BOOST_TEST(moved.run(moved_rows, AttentionImpl::fused).to_vector<T>() == want);
}

BOOST_AUTO_TEST_CASE(a_row_has_the_same_bits_in_any_company) {
  const int before = threads();
  std::mt19937_64 random(3);
  for (const auto* variant : cpu::attention::variants<float>()) {
    BOOST_REQUIRE(cpu::attention::use_variant(variant->name));
    for (const int64_t window : {0, 300}) {
      BOOST_TEST_CONTEXT(variant->name << ", window " << window) {
        check_bits<float>(random, {.M = 5, .d = 20, .block = 16}, 40, 70, window);
        check_bits<float>(random, {.M = 5, .d = 20, .block = 16, .terms = 0}, 40, 70, window);
        check_bits<float>(random, {.G = 2, .M = 6, .share = 3, .d = 72, .k_rank = 3, .block = 7}, 60, 25, window);
        check_bits<double>(random, {.M = 3, .d = 12, .block = 5}, 70, 20, window);
      }
    }
  }
  cpu::attention::use_variant("");
  set_threads(before);
}

// The pool also holds keys that a row does not attend to: later positions, and memory that nobody wrote.
BOOST_AUTO_TEST_CASE(keys_of_others_reach_no_row_even_if_they_are_nan) {
  const Tables tables{{3, 1, 0}};
  const Pages pages({.M = 3, .d = 20, .block = 8, .blocks = 4}, 3, 11, DType::f32);
  const std::vector<PagedRow> rows{{tables[0], 0, 9}, {tables[0], 2, 13}, {tables[0], 5, 14}};
  const auto all = pages.run(rows, AttentionImpl::fused).to_vector<float>();
  for (size_t r = 0; r < rows.size(); ++r) {
    Pages poisoned = pages;
    for (Tensor* t : poisoned.of_keys()) {
      *t = t->clone();
      for (int64_t block = 0, s = 0; block < 4; ++block) {
        const auto column = std::ranges::find(tables[0], block) - tables[0].begin();
        for (int64_t i = 0; i < 8; ++i, ++s) {
          const int64_t position = column * 8 + i;
          if (position < rows[r].first || position >= rows[r].end) t->sliced(1, s, s + 1).fill(std::nan(""));
        }
      }
    }
    const auto got = poisoned.run(rows, AttentionImpl::fused).to_vector<float>();
    const auto size = static_cast<ptrdiff_t>(all.size() / rows.size()), from = static_cast<ptrdiff_t>(r) * size;
    BOOST_TEST(std::equal(all.begin() + from, all.begin() + from + size, got.begin() + from), "row " << r);
  }
}

// Rows that share a table without sharing keys.
BOOST_AUTO_TEST_CASE(entries_of_the_table_between_the_rows_are_not_read) {
  std::vector<int32_t> table(12, 0x30000000);  // far from any block
  table[0] = 0, table[10] = 1;
  const std::vector<PagedRow> rows{{table, 0, 3}, {table, 40, 44}, {table, 5, 5}, {table, 1, 4}, {table, 43, 44}};
  const Pages pages({.block = 4, .blocks = 2}, std::ssize(rows), 12, DType::f32);
  BOOST_TEST(is_close(pages.run(rows, AttentionImpl::fused), pages.run(rows, AttentionImpl::reference), 1e-5));
}

BOOST_AUTO_TEST_CASE(no_heads) {
  const std::vector<int32_t> table{0};
  const std::vector<PagedRow> rows{{table, 0, 3}};
  const Tensor q = zeros({1, 1, 0, 4}), k = zeros({1, 8, 1, 4});
  BOOST_TEST(str(paged_attention(q, k, k, {}, {}, {.block = 4, .rows = rows}).shape()) == "(1, 1, 0, 4)");
}

BOOST_AUTO_TEST_CASE(half_precision_is_computed_in_f32) {
  const Tables tables{{1, 0}};
  const std::vector<PagedRow> rows{{tables[0], 0, 5}, {tables[0], 0, 6}};
  Pages pages({.blocks = 2}, 2, 9, DType::f32);
  const auto each = [&](auto&& f) {
    DcmhaInputs x{pages.q, pages.k, pages.v, pages.pre, pages.post};
    for_each_tensor([&](const AttentionRole&, Tensor& t) { t = f(t); }, x);
    pages.q = x.q, pages.k = x.k, pages.v = x.v, pages.pre = x.pre, pages.post = x.post;
  };
  each([](const Tensor& t) { return t.to(DType::bf16).to(DType::f32); });
  const Tensor want = pages.run(rows, AttentionImpl::fused).to(DType::bf16);
  each([](const Tensor& t) { return t.to(DType::bf16); });
  const Tensor got = pages.run(rows, AttentionImpl::fused);
  BOOST_TEST((got.dtype() == DType::bf16));
  BOOST_TEST(is_close(got.to(DType::f32), want.to(DType::f32), 0));
}

// A cache of a 16-bit model: keys and values in its type, everything else in it or in f32. One row reads what the cache
// holds, many share widened copies.
BOOST_AUTO_TEST_CASE(narrow_keys_give_the_bits_of_widened_ones) {
  struct Case {
    int64_t M, d;
    bool all_narrow;
  };
  for (const char* variant : {"avx512", "avx2", "portable"}) {
    if (!cpu::attention::use_variant(variant)) continue;
    for (const DType type : {DType::bf16, DType::f16}) {
      for (const auto& [M, d, all_narrow] :
           {Case{3, 8, false}, {3, 16, true}, {3, 20, false}, {3, 64, true}, {18, 32, true}, {18, 128, false}}) {
        Pages pages({.M = M, .d = d, .block = 4, .blocks = 30}, 5, 7, DType::f32);
        std::vector<int32_t> table(30);
        std::iota(table.rbegin(), table.rend(), 0);
        const std::vector<PagedRow> rows{
            {table, 0, 117}, {table, 3, 9}, {table, 0, 120}, {table, 64, 65}, {table, 7, 7}};
        pages.k.sliced(1, 0, 1).fill(1e-6);  // f16: below its smallest normal value
        const auto convert = [&, all = all_narrow](DType to) {
          pages.k = pages.k.to(to), pages.v = pages.v.to(to);
          DcmhaInputs x{pages.q, pages.k, pages.v, pages.pre, pages.post};
          if (all) for_each_tensor([&](const AttentionRole&, Tensor& t) { t = t.to(to); }, x);
          pages.q = x.q, pages.pre = x.pre, pages.post = x.post;
        };
        convert(type);
        const Tensor got = pages.run(rows, AttentionImpl::fused);
        const Tensor composed = pages.run(rows, AttentionImpl::reference);
        BOOST_TEST_CONTEXT(variant << " " << str(type) << " M " << M << " d " << d) {
          for (int64_t r = 0; r < 5; ++r)
            BOOST_TEST(is_close(got.sliced(1, r, r + 1), pages.run(rows, AttentionImpl::fused, r, r + 1), 0));
          convert(DType::f32);
          BOOST_TEST(is_close(got, pages.run(rows, AttentionImpl::fused).to(got.dtype()), 0));
          BOOST_TEST(is_close(got.to_vector<double>(), composed.to_vector<double>(), all_narrow ? 0x1p-6 : 1e-5));
        }
      }
    }
  }
  cpu::attention::use_variant("");
}

BOOST_AUTO_TEST_CASE(rejections) {
  const std::vector<int32_t> table{1, -1, 2};
  Pages pages({.blocks = 2}, 1, 10, DType::f32);
  const auto call = [&](const PagedRow& row) { pages.run(std::vector{row}, AttentionImpl::automatic); };
  call({table, 0, 4});
  BOOST_TEST(str(pages.run(std::vector<PagedRow>{}, AttentionImpl::automatic, 0, 0).shape()) == "(1, 0, 4, 8)");
  BOOST_TEST(throws_with(
      [&] {
        call({table, 0, 5});
      },
      "[paged_attention] row 0 attends to positions 0..4, of which block 1 is not in its table"));
  BOOST_TEST(throws_with([&] { call({table, 8, 9}); }, "of which block 2 is not in its table, or is none of 2"));
  BOOST_TEST(throws_with([&] { call({table, 8, 13}); }, "block"));
  BOOST_TEST(throws_with([&] { call({table, -1, 1}); }, "begin at the negative position -1"));
  BOOST_TEST(throws_with([&] { paged_attention(pages.q, pages.k, pages.v, {}, {}, {.block = 4, .rows = {}}); },
                         "1 query rows need as many tables, got 0"));
  pages.s.block = 3;
  BOOST_TEST(throws_with([&] { call({table, 0, 2}); }, "8 key rows do not divide into blocks of 3"));
  pages.s.block = 4;
  require_grad(pages.v);
  BOOST_TEST(throws_with([&] { call({table, 0, 4}); }, "[paged_attention] has no derivative"));
}

BOOST_AUTO_TEST_SUITE_END()
