// The tables of a paged cache: against a simple reference that owns each block by a shared pointer, and by what queries
// read.
#include "braid/nn/attention/paged_cache.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <set>

#include "braid/autograd.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(paged_cache)

namespace {

constexpr int64_t kBlock = 4;
const std::vector<nn::LayerWindow> kLayers = {{0, 0}, {6, 6}, {1, 1}};

// A sequence as it should be: its tokens, and the blocks of each layer, null where they were given back.
struct Expected {
  std::vector<double> tokens;
  std::vector<std::vector<std::shared_ptr<int>>> layers{kLayers.size()};
};

// The first block that a query at `position` may reach.
int64_t reached(size_t layer, int64_t position) {
  const int64_t keys = kLayers[layer].window;
  return keys == 0 ? 0 : std::max<int64_t>(0, position - keys + 1) / kBlock;
}

class Check {
 public:
  explicit Check(int64_t positions) : cache(kLayers, positions, kBlock) {}

  void open() { sequences[cache.open()] = {}; }

  void fork(int of, int64_t length) {
    const Expected& parent = sequences.at(of);
    const int child = cache.fork(of, length);
    length = std::min(length, std::ssize(parent.tokens));
    Expected expected;
    bool possible = true;
    for (size_t i = 0; i < kLayers.size(); ++i) {
      const auto& from = parent.layers[i];
      auto& to = expected.layers[i];
      to.assign(from.begin(), from.begin() + (length + kBlock - 1) / kBlock);
      for (int64_t b = 0; b < std::ssize(to); ++b) {
        if (b < reached(i, length)) to[static_cast<size_t>(b)] = nullptr;
        // A key that the next token attends to, or one before it in the same block, was given back.
        else if (!to[static_cast<size_t>(b)])
          possible = false;
      }
    }
    expected.tokens.assign(parent.tokens.begin(), parent.tokens.begin() + length);
    BOOST_TEST(cache.length(child) == (possible ? length : 0));
    sequences[child] = possible ? expected : Expected();
  }

  void close(int sequence) {
    cache.close(sequence);
    sequences.erase(sequence);
  }

  // False where there is no room; then nothing has changed.
  bool reserve(int sequence, int64_t more) {
    Expected& s = sequences.at(sequence);
    const int64_t length = std::ssize(s.tokens), blocks = (length + more + kBlock - 1) / kBlock;
    const auto must_copy = [&](const std::vector<std::shared_ptr<int>>& table) {
      return length % kBlock != 0 && table[static_cast<size_t>(length / kBlock)].use_count() > 1;
    };
    int64_t needed = 0;
    for (const auto& table : s.layers) needed += std::max<int64_t>(0, blocks - std::ssize(table)) + must_copy(table);
    const bool room = needed <= cache.blocks() - used();
    BOOST_REQUIRE(cache.reserve(sequence, more) == room);
    for (auto& table : s.layers) {
      if (!room) break;
      if (must_copy(table)) table[static_cast<size_t>(length / kBlock)] = std::make_shared<int>();
      while (std::ssize(table) < blocks) table.push_back(std::make_shared<int>());
    }
    return room;
  }

  // One pass. Key and value of a token are its number, and queries are 0: a row is the mean of what it attends to.
  void append(const std::vector<std::pair<int, std::vector<double>>>& parts) {
    std::vector<nn::PagedCache::Part> rows;
    std::vector<double> tokens, want_positions;
    for (const auto& [sequence, added] : parts) {
      rows.push_back({sequence, std::ssize(added)});
      for (size_t t = 0; t < added.size(); ++t)
        want_positions.push_back(static_cast<double>(sequences.at(sequence).tokens.size() + t));
      tokens.insert(tokens.end(), added.begin(), added.end());
    }
    cache.begin(rows);
    BOOST_TEST(cache.positions().to_vector<double>() == want_positions);
    const int64_t R = std::ssize(tokens);
    const Tensor kept = from_vector(tokens, {1, R, 1, 1});
    for (const auto& [sequence, added] : parts) {
      Expected& s = sequences.at(sequence);
      s.tokens.insert(s.tokens.end(), added.begin(), added.end());
    }
    for (size_t i = 0; i < kLayers.size(); ++i) {
      std::vector<double> want;
      for (const auto& [sequence, added] : parts) {
        const std::vector<double>& all = sequences.at(sequence).tokens;
        for (size_t end = all.size() - added.size() + 1; end <= all.size(); ++end) {
          const auto window = static_cast<size_t>(kLayers[i].window);
          const size_t first = window > 0 && end > window ? end - window : 0;
          double sum = 0;
          for (size_t t = first; t < end; ++t) sum += all[t];
          want.push_back(sum / static_cast<double>(end - first));
        }
      }
      nn::AttentionOperands x{zeros({1, R, 1, 1}, DType::f64), kept, kept, {}, {}};
      DcmhaOptions options;
      cache.layer(i).extend(x, options);
      BOOST_TEST(is_close(nn::attend(x, options).to_vector<double>(), want, 1e-12));
    }
    cache.end();
    for (const auto& [sequence, added] : parts) {
      Expected& s = sequences.at(sequence);
      for (size_t i = 0; i < kLayers.size(); ++i)
        for (int64_t b = 0; b < std::min(reached(i, std::ssize(s.tokens)), std::ssize(s.layers[i])); ++b)
          s.layers[i][static_cast<size_t>(b)] = nullptr;
    }
  }

  int64_t used() const {
    std::set<const int*> blocks;
    for (const auto& [number, s] : sequences)
      for (const auto& table : s.layers)
        for (const auto& block : table)
          if (block) blocks.insert(block.get());
    return std::ssize(blocks);
  }

  nn::PagedCache cache;
  std::map<int, Expected> sequences;
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_lives_of_sequences_leak_and_mix_nothing) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    Check check(60);
    int full = 0, forks = 0;
    double token = 0;
    for (int step = 0; step < 400; ++step) {
      BOOST_TEST_CONTEXT("seed " << seed << ", step " << step) {
        std::vector<int> open;
        for (const auto& [number, s] : check.sequences) open.push_back(number);
        const auto any = [&] { return open[static_cast<size_t>(below(std::ssize(open)))]; };
        const int64_t what = open.empty() ? 0 : below(10);
        if (what < 1) {
          check.open();
        } else if (what < 2) {
          check.close(any());
        } else if (what < 4) {
          const int of = any();
          const int64_t length = std::ssize(check.sequences.at(of).tokens);
          check.fork(of, below(2) ? length : below(length + 2));
          ++forks;
        } else if (what < 5) {
          check.reserve(any(), 1 + below(9));  // perhaps for nothing
        } else {
          std::vector<std::pair<int, std::vector<double>>> parts;
          std::shuffle(open.begin(), open.end(), random);
          for (const int sequence : open) {
            if (parts.size() >= 3) break;
            const int64_t more = 1 + below(7);
            if (!check.reserve(sequence, more)) {
              ++full;
              continue;
            }
            parts.emplace_back(sequence, std::vector<double>());
            for (int64_t t = 0; t < more; ++t) parts.back().second.push_back(++token);
          }
          if (!parts.empty()) check.append(parts);
        }
        BOOST_REQUIRE(check.cache.free_blocks() == check.cache.blocks() - check.used());
        for (const auto& [number, s] : check.sequences) BOOST_TEST(check.cache.length(number) == std::ssize(s.tokens));
      }
    }
    BOOST_TEST(full > 0);
    BOOST_TEST(forks > 20);
    while (!check.sequences.empty()) check.close(check.sequences.begin()->first);
    BOOST_TEST(check.cache.free_blocks() == check.cache.blocks());
  }
}

BOOST_AUTO_TEST_CASE(blocks_for_is_enough) {
  nn::PagedCache cache({{0, 0}, {20, 20}, {1, 1}}, 2000, 16);
  const int s = cache.open();
  const auto append = [&](int64_t tokens) {
    BOOST_REQUIRE(cache.reserve(s, tokens));
    const int64_t max = cache.blocks() - cache.free_blocks();
    cache.begin({{s, tokens}});
    cache.end();
    BOOST_TEST(max <= cache.blocks_for(cache.length(s)), "at " << cache.length(s) << ": " << max);
  };
  append(1280);
  for (int i = 0; i < 40; ++i) append(1);
  append(97);
  // Layers with windows hold a few blocks; 1417 positions take 89 in the other one.
  BOOST_TEST(cache.blocks() - cache.free_blocks() == 89 + 2 + 1);
  BOOST_TEST(cache.blocks_for(16) == 3);
  BOOST_TEST(cache.blocks_for(17) == 6);
}

// Generated tokens have other keys where the two windows differ, so a fork takes those that were given.
BOOST_AUTO_TEST_CASE(a_fork_shares_no_generated_token_where_windows_differ) {
  for (const int64_t decode_window : {8, 9}) {
    nn::PagedCache cache({{0, 0}, {9, decode_window}}, 100, 4);
    const int s = cache.open();
    BOOST_REQUIRE(cache.reserve(s, 8));
    cache.begin({{s, 6}});
    cache.end();
    cache.begin({{s, 2, true}});
    cache.end();
    BOOST_TEST(cache.length(cache.fork(s, 8)) == (decode_window == 9 ? 8 : 6));
  }
}

// A generated token attends within the window of its own.
BOOST_AUTO_TEST_CASE(generated_tokens_have_their_window) {
  nn::PagedCache cache({{4, 2}}, 100, 4);
  const int s = cache.open();
  BOOST_REQUIRE(cache.reserve(s, 6));
  const auto mean = [&](std::vector<double> values, bool generated) {
    const int64_t R = std::ssize(values);
    cache.begin({{s, R, generated}});
    const Tensor v = from_vector(values, {1, R, 1, 1});
    nn::AttentionOperands x{zeros({1, R, 1, 1}, DType::f64), v, v, {}, {}};
    DcmhaOptions options;
    cache.layer(0).extend(x, options);
    const std::vector<double> y = nn::attend(x, options).to_vector<double>();
    cache.end();
    return y;
  };
  BOOST_TEST(is_close(mean({1, 2, 3, 4, 5}, false), std::vector<double>{1, 1.5, 2, 2.5, 3.5}, 1e-12));
  BOOST_TEST(is_close(mean({7}, true), std::vector<double>{6}, 1e-12));
}

BOOST_AUTO_TEST_CASE(keys_and_values_are_kept_in_the_type_of_the_model) {
  const auto bytes = [](DType type) {
    nn::PagedCache cache({{0, 0}}, 8, 4);
    const int s = cache.open();
    cache.reserve(s, 3);
    cache.begin({{s, 3}});
    nn::AttentionOperands x{ones({1, 3, 2, 8}, type), ones({1, 3, 2, 8}, type), ones({1, 3, 2, 8}, type), {}, {}};
    DcmhaOptions options;
    cache.layer(0).extend(x, options);
    BOOST_TEST((nn::attend(x, options).dtype() == type));
    return cache.bytes();
  };
  BOOST_TEST(bytes(DType::f32) == 2 * 8 * 2 * 8 * 4);
  for (const DType type : {DType::bf16, DType::f16}) BOOST_TEST(2 * bytes(type) == bytes(DType::f32));
}

BOOST_AUTO_TEST_CASE(misuse_is_told) {
  nn::PagedCache cache({{0, 0}}, 8, 4);
  BOOST_TEST(throws_with([&] { cache.length(0); }, "there is no open sequence 0"));
  const int s = cache.open();
  BOOST_TEST(throws_with([&] { cache.begin({{s, 1}}); }, "1 tokens for sequence 0: there is room for 0; reserve() it"));
  BOOST_TEST(cache.reserve(s, 8));
  BOOST_TEST(!cache.reserve(s, 9));
  BOOST_TEST(throws_with([&] { cache.begin({{s, 1}, {s, 1}}); }, "two parts of sequence 0 in one pass"));
  BOOST_TEST(throws_with([&] { cache.fork(s, -1); }, "cannot fork at position -1"));
  BOOST_TEST(throws_with([&] { cache.close(5); }, "there is no open sequence 5"));
  cache.close(s);
  BOOST_TEST(throws_with([&] { cache.close(s); }, "there is no open sequence 0"));
  BOOST_TEST(cache.free_blocks() == 2);
}

BOOST_AUTO_TEST_SUITE_END()
