// Many sequences in one pool: each gets what one pass over its own text gives, and the same bits in any mixture.
#include <boost/test/unit_test.hpp>
#include <random>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/inference/sequence_pool.h"
#include "braid/tensor/parallel.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(paged_sequences)

namespace {

constexpr int64_t kVocab = 40;

struct Variant {
  const char* preset;
  Keys keys;
};
const std::vector<Variant> kVariants = [] {
  std::vector<Variant> list = {
      {"dcformer-tiny", {{"profile.name", "J"}}},
      {"dcformer-tiny", {{"profile.name", "H-train"}, {"window_type", "LGLL"}, {"n_layer", "4"}}},
      {"dcformer-tiny", {{"profile.layer_windows", "1,20,null"}}},
      {"dcformer-tiny", {{"profile.static_proj", "true"}, {"profile.num_groups", "2"}, {"profile.rank", "1"}}},
      {"dcformer-tiny", {{"profile.key_side", "false"}, {"n_kv_head", "2"}}},
      {"dcpythia-tiny", {{"profile.name", "J"}}},
      {"transformer-tiny", {{"n_kv_head", "2"}, {"tie_word_embeddings", "true"}}},
  };
  for (const Keys& keys : variant_keys())
    if (!models::configure("dcformer-tiny", keys).composed_attention()) list.push_back({"dcformer-tiny", keys});
  return list;
}();

std::vector<int32_t> text(int64_t salt, int64_t length) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>((i * 7 + i * i + salt * 11) % kVocab));
  return ids;
}

Tensor one_pass(const models::Dcformer& model, const std::vector<int32_t>& ids) {
  const NoGrad off;
  const Tensor h = model.hidden(from_vector(ids, {1, std::ssize(ids)}));
  return h.reshaped({h.dim(1), h.dim(2)});
}

// A sequence on its way through a pool, and the hidden states that it has got.
struct Run {
  std::vector<int32_t> ids;
  int sequence = -1;
  std::vector<double> got;
};

// Passes with pieces of random sizes of some of the sequences until all are complete; `forks` of them part from another
// one on the way.
void run_mixed(models::SequencePool& pool, std::vector<Run>& runs, std::mt19937_64& random, int64_t longest_piece) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (;;) {
    std::vector<models::SequencePool::Part> parts;
    std::vector<Run*> computed;
    for (Run& run : runs) {
      if (run.sequence < 0) run.sequence = pool.open();
      const int64_t at = pool.length(run.sequence), left = std::ssize(run.ids) - at;
      if (left == 0 || below(3) == 0) continue;
      const int64_t n = std::min(left, 1 + below(longest_piece));
      BOOST_REQUIRE(pool.reserve(run.sequence, n));
      parts.push_back({run.sequence, std::span(run.ids).subspan(static_cast<size_t>(at), static_cast<size_t>(n))});
      computed.push_back(&run);
    }
    bool complete = true;
    for (const Run& run : runs) complete = complete && pool.length(run.sequence) == std::ssize(run.ids);
    if (complete) return;
    if (parts.empty()) continue;
    const Tensor h = pool.hidden(parts);
    int64_t row = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t n = std::ssize(parts[i].tokens);
      const std::vector<double> rows = h.sliced(0, row, row + n).to_vector<double>();
      computed[i]->got.insert(computed[i]->got.end(), rows.begin(), rows.end());
      row += n;
    }
    BOOST_REQUIRE(row == h.dim(0));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(mixed_pieces_give_what_one_pass_gives) {
  std::mt19937_64 random(1);
  for (const Variant& v : kVariants) {
    BOOST_TEST_CONTEXT(v.preset << " " << (v.keys.empty() ? "" : v.keys[0].first)) {
      const models::Dcformer model = mixing_model(v.preset, v.keys, DType::f64);
      const auto pool = model.make_sequence_pool(400);
      std::vector<Run> runs;
      for (int64_t i = 0; i < 5; ++i) runs.push_back({text(i, 10 + 17 * i)});
      run_mixed(*pool, runs, random, 30);
      for (const Run& run : runs) BOOST_TEST(is_close(run.got, one_pass(model, run.ids).to_vector<double>(), 1e-10));
      for (const Run& run : runs) pool->close(run.sequence);
      BOOST_TEST(pool->free_blocks() == pool->blocks());
    }
  }
}

// Which no kernel serves for keys in blocks: sequences one after the other.
BOOST_AUTO_TEST_CASE(a_composed_variant_has_a_pool_of_separate_sequences) {
  std::mt19937_64 random(6);
  for (const Keys& keys : variant_keys()) {
    if (!models::configure("dcformer-tiny", keys).composed_attention()) continue;
    BOOST_TEST_CONTEXT(keys[0].second) {
      const models::Dcformer model = mixing_model("dcformer-tiny", keys, DType::f64);
      const auto pool = model.make_sequence_pool(400);
      BOOST_TEST(!pool->invariant());
      std::vector<Run> runs;
      for (int64_t i = 0; i < 3; ++i) runs.push_back({text(i, 10 + 17 * i)});
      run_mixed(*pool, runs, random, 30);
      for (const Run& run : runs) BOOST_TEST(is_close(run.got, one_pass(model, run.ids).to_vector<double>(), 1e-10));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_mixture_has_the_same_bits) {
  const int before = threads();
  std::mt19937_64 random(2);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const Variant& v : kVariants) {
      BOOST_TEST_CONTEXT(v.preset << " " << (v.keys.empty() ? "" : v.keys[0].first) << " " << str(dtype)) {
        const models::Dcformer model = mixing_model(v.preset, v.keys, dtype);
        const auto pool = model.make_sequence_pool(600);
        BOOST_REQUIRE(pool->invariant());
        std::vector<std::vector<double>> alone;
        for (int64_t i = 0; i < 5; ++i) {
          std::vector<Run> one{{text(i, 12 + 19 * i)}};
          run_mixed(*pool, one, random, 96);
          alone.push_back(one[0].got);
          pool->close(one[0].sequence);
        }
        for (const int64_t longest : {1, 7, 60}) {
          set_threads(1 + static_cast<int>(random() % 3));
          std::vector<Run> runs;
          for (int64_t i = 0; i < 5; ++i) runs.push_back({text(i, 12 + 19 * i)});
          run_mixed(*pool, runs, random, longest);
          for (size_t i = 0; i < runs.size(); ++i) BOOST_TEST((runs[i].got == alone[i]), "text " << i);
          for (const Run& run : runs) pool->close(run.sequence);
        }
      }
    }
  }
  set_threads(before);
}

// Continuations of one prompt: whole blocks are shared, the last one is copied, and the bits are those of a sequence of
// its own.
BOOST_AUTO_TEST_CASE(forks_share_the_prompt) {
  std::mt19937_64 random(3);
  for (const Variant& v : kVariants) {
    BOOST_TEST_CONTEXT(v.preset << " " << (v.keys.empty() ? "" : v.keys[0].first)) {
      const models::Dcformer model = mixing_model(v.preset, v.keys, DType::f32);
      const auto pool = model.make_sequence_pool(600);
      std::vector<Run> prompt{{text(1, 37)}};
      run_mixed(*pool, prompt, random, 10);
      const int64_t used = pool->blocks() - pool->free_blocks();
      std::vector<Run> runs;
      for (int64_t i = 0; i < 3; ++i) {
        Run run = prompt[0];
        for (const int32_t id : text(i + 5, 20)) run.ids.push_back(id);
        run.sequence = pool->fork(prompt[0].sequence, 37);
        BOOST_TEST(pool->length(run.sequence) == 37);
        runs.push_back(run);
      }
      BOOST_TEST(pool->blocks() - pool->free_blocks() == used);
      pool->close(prompt[0].sequence);
      run_mixed(*pool, runs, random, 5);
      for (const Run& run : runs) {
        std::vector<Run> one{{run.ids}};
        run_mixed(*pool, one, random, 60);
        BOOST_TEST((run.got == one[0].got));
        pool->close(one[0].sequence);
        pool->close(run.sequence);
      }
      BOOST_TEST(pool->free_blocks() == pool->blocks());
    }
  }
}

BOOST_AUTO_TEST_CASE(local_layers_give_blocks_back) {
  const models::Dcformer model = mixing_model("dcformer-tiny", {{"profile.layer_windows", "8,null,8"}}, DType::f32);
  const auto pool = model.make_sequence_pool(96);
  std::mt19937_64 random(4);
  std::vector<Run> run{{text(0, 96)}};
  run_mixed(*pool, run, random, 8);
  BOOST_TEST(pool->blocks() == 18);
  BOOST_TEST(pool->blocks() - pool->free_blocks() == 6 + 1 + 1);
  // The window before position 40 is gone, that before the end is not.
  const int early = pool->fork(run[0].sequence, 40), late = pool->fork(run[0].sequence, 96);
  BOOST_TEST(pool->length(early) == 0);
  BOOST_TEST(pool->length(late) == 96);
  BOOST_TEST(pool->bytes() == 18 * 16 * (2 * 32 + 2 * (2 * 2 * 4 + 4)) * 4);
}

// A one-token step of profile T1 attends to W keys, a prompt to W+1, whatever its pieces.
BOOST_AUTO_TEST_CASE(t1_tells_given_tokens_from_generated_ones) {
  const Keys t1 = {{"profile.name", "T1"}, {"n_layer", "2"}, {"profile.layer_windows", "null,8"}};
  const models::Dcformer model = mixing_model("dcformer-tiny", t1, DType::f64);
  const std::vector<int32_t> ids = text(3, 40);
  const auto pool = model.make_sequence_pool(200);
  std::mt19937_64 random(5);
  std::vector<Run> given{{ids}};
  run_mixed(*pool, given, random, 3);
  BOOST_TEST(is_close(given[0].got, one_pass(model, ids).to_vector<double>(), 1e-10));

  const NoGrad off;
  models::KvCache cache = model.make_cache(64);
  const int s = pool->open();
  for (int64_t at = 0; at < 40;) {
    const int64_t n = at == 0 ? 20 : 1;
    const std::vector<int32_t> piece(ids.begin() + at, ids.begin() + at + n);
    const Tensor want = model.hidden(from_vector(piece, {1, n}), &cache);
    BOOST_REQUIRE(pool->reserve(s, n));
    const Tensor got = pool->hidden(std::vector<models::SequencePool::Part>{{s, piece, at > 0}});
    BOOST_TEST(is_close(got, want.reshaped({n, want.dim(2)}), 1e-10));
    at += n;
  }
  BOOST_TEST(pool->length(pool->fork(s, 40)) == 0);  // 20 positions were given; the window before them is gone
}

BOOST_AUTO_TEST_CASE(a_full_pool_says_so) {
  const models::Dcformer model = mixing_model("dcformer-tiny", {}, DType::f32);
  const auto pool = model.make_sequence_pool(32);
  const int a = pool->open(), b = pool->open();
  BOOST_TEST(pool->blocks_for(32) == pool->blocks());
  BOOST_TEST(pool->reserve(a, 17));
  BOOST_TEST(!pool->reserve(b, 1));
  BOOST_TEST(throws_with([&] { pool->hidden(std::vector<models::SequencePool::Part>{{b, text(0, 1)}}); }, "reserve"));
  pool->close(a);
  BOOST_TEST(pool->reserve(b, 32));
  BOOST_TEST(throws_with([&] { model.make_sequence_pool(0); }, "room for at least one position"));
}

BOOST_AUTO_TEST_SUITE_END()
