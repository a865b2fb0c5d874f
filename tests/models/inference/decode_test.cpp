// A prompt in one piece or in pieces of any size, then token by token, gives what one pass over everything gives.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/model.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(decode)

namespace {

constexpr int64_t W = 8, kLongest = 3 * W + 3, kVocab = 40;

Tensor all_ids() {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 2 * kLongest; ++i) ids.push_back((i * 7 + i * i) % kVocab);
  return from_vector(ids, {2, kLongest});
}

Tensor full_pass(const models::Dcformer& model) { return model.logits(model.hidden(all_ids())); }

// Logits of all positions, the tokens given in pieces of these lengths.
Tensor in_pieces(const models::Dcformer& model, const std::vector<int64_t>& pieces) {
  models::KvCache cache = model.make_cache(kLongest);
  std::vector<Tensor> got;
  int64_t at = 0;
  for (int64_t n : pieces) {
    got.push_back(model.logits(model.hidden(all_ids().sliced(1, at, at + n).clone(), &cache)));
    at += n;
  }
  return concat(got, 1);
}

std::vector<int64_t> prompt_then_steps(int64_t prompt) {
  std::vector<int64_t> pieces{prompt};
  pieces.resize(static_cast<size_t>(1 + kLongest - prompt), 1);
  return pieces;
}

// Pieces of one length, the last one shorter.
std::vector<int64_t> chunks_of(int64_t length) {
  std::vector<int64_t> pieces;
  for (int64_t at = 0; at < kLongest; at += length) pieces.push_back(std::min(length, kLongest - at));
  return pieces;
}

Tensor rows(const Tensor& x, int64_t first, int64_t last) { return x.sliced(1, first, last).clone(); }

struct Variant {
  const char* preset;
  Keys keys;
};
const std::vector<Variant> kConsistent = [] {
  std::vector<Variant> list = {
      {"dcformer-tiny", {{"profile.name", "J"}}},
      {"dcformer-tiny", {{"profile.name", "H-inf"}}},
      {"dcformer-tiny", {{"profile.name", "H-train"}}},  // W+1 keys in both
      {"dcformer-tiny", {{"profile.name", "J"}, {"n_layer", "4"}, {"window_type", "LGLL"}}},
      {"dcformer-tiny", {{"profile.name", "J"}, {"profile.layer_windows", "8,8,8"}}},
      {"dcformer-tiny", {{"profile.name", "H-inf"}, {"profile.layer_windows", "1,8,null"}}},
      {"dcformer-tiny", {{"profile.name", "T1"}, {"window_type", "G"}}},  // no local layers: T1 agrees too
      {"dcformer-tiny", {{"profile.static_proj", "true"}, {"profile.num_groups", "2"}, {"profile.rank", "1"}}},
      {"dcformer-tiny", {{"profile.key_side", "false"}}},
      {"dcformer-tiny", {{"profile.query_side", "false"}, {"profile.post_compose", "false"}}},
      {"dcpythia-tiny", {{"profile.name", "J"}}},
      {"transformer-tiny", {{"window_size", "8"}}},
      {"transformer-tiny", {{"n_kv_head", "2"}, {"tie_word_embeddings", "true"}, {"rope_scaling", "linear"}}},
      {"dcformer-tiny", {{"n_kv_head", "1"}, {"use_linear_bias", "true"}}},
      {"dcformer-tiny", {{"logit_softcap", "2"}}},
      {"olmo2-tiny", {{"n_kv_head", "2"}, {"window_size", "null"}, {"window_type", "G"}}},
      {"gemma2-tiny", {{"attention_softcap", "2"}, {"score_dim", "5"}}},
      {"gemma3-tiny", {{"rope_scaling", "linear"}, {"rope_scaling_factor", "8"}}},
      {"dcformer-tiny", {{"attention_softcap", "2"}, {"qk_norm_all_heads", "true"}, {"norm_place", "both"}}},
  };
  for (const Keys& keys : variant_keys()) list.push_back({"dcformer-tiny", keys});
  return list;
}();

}  // namespace

BOOST_AUTO_TEST_CASE(prefill_and_steps_agree_with_the_full_pass_around_the_window) {
  NoGrad off;
  for (const Variant& v : kConsistent) {
    const models::Dcformer model = mixing_model(v.preset, v.keys);
    const Tensor want = full_pass(model);
    for (int64_t prompt : {int64_t{1}, W - 1, W, W + 1, 2 * W - 1, 2 * W, 2 * W + 1}) {
      BOOST_TEST_CONTEXT(v.preset << " " << models::profile_name(model.config()) << ", prompt of " << prompt)
      BOOST_TEST(is_close(in_pieces(model, prompt_then_steps(prompt)), want, 1e-10));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_may_end_anywhere) {  // the full pass itself, at every length around W and 2 W
  NoGrad off;
  const models::Dcformer model = mixing_model("dcformer-tiny", {{"profile.name", "J"}});
  const Tensor want = full_pass(model);
  for (int64_t T : {int64_t{1}, W - 1, W, W + 1, 2 * W - 1, 2 * W, 2 * W + 1})
    BOOST_TEST(is_close(model.logits(model.hidden(all_ids().sliced(1, 0, T).clone())), rows(want, 0, T), 1e-10), T);
}

BOOST_AUTO_TEST_CASE(chunks_of_any_size_agree_with_the_full_pass) {
  NoGrad off;
  for (const Variant& v : kConsistent) {
    const models::Dcformer model = mixing_model(v.preset, v.keys);
    const Tensor want = full_pass(model);
    for (int64_t length = 2; length <= 2 * W + 2; ++length) {
      BOOST_TEST_CONTEXT(v.preset << " " << models::profile_name(model.config()) << ", chunks of " << length)
      BOOST_TEST(is_close(in_pieces(model, chunks_of(length)), want, 1e-10));
    }
  }
}

BOOST_AUTO_TEST_CASE(chunks_and_steps_may_alternate) {
  NoGrad off;
  const std::vector<std::vector<int64_t>> mixed = {
      {kLongest},  {1, kLongest - 1}, {7, 1, 1, 8, 9, 1},      {1, 1, 2, 1, 3, 1, 4, 1, 5, 1, 7},
      {16, 1, 10}, {1, 17, 1, 1, 7},  {8, 8, 1, 1, 1, 1, 1, 6}};
  for (const Variant& v : kConsistent) {
    const models::Dcformer model = mixing_model(v.preset, v.keys);
    const Tensor want = full_pass(model);
    for (const std::vector<int64_t>& pieces : mixed) {
      int64_t sum = 0;
      for (int64_t n : pieces) sum += n;
      BOOST_REQUIRE(sum == kLongest);
      BOOST_TEST(is_close(in_pieces(model, pieces), want, 1e-10));
    }
  }
}

// T1 attends to W+1 keys in a pass over several tokens and W in a one-token step. With the only local layer last, the
// keys of that layer do not depend on windows, so each row must equal that row of a full pass with the window of its
// own piece.
BOOST_AUTO_TEST_CASE(t1_takes_the_window_of_each_piece) {
  NoGrad off;
  const Keys t1 = {{"profile.name", "T1"}, {"n_layer", "2"}, {"profile.layer_windows", "null,8"}};
  Keys narrow_keys = t1;
  narrow_keys.emplace_back("profile.window_keys", "W");
  const models::Dcformer model = mixing_model("dcformer-tiny", t1), narrow = mixing_model("dcformer-tiny", narrow_keys);
  const Tensor wide_rows = full_pass(model), narrow_rows = full_pass(narrow);
  BOOST_TEST(is_close(rows(wide_rows, 0, W), rows(narrow_rows, 0, W), 1e-10));  // no difference before W
  for (int64_t row = W; row < kLongest; ++row)
    BOOST_TEST(!is_close(rows(wide_rows, row, row + 1), rows(narrow_rows, row, row + 1), 1e-6), row);
  std::vector<std::vector<int64_t>> splits = {{7, 1, 1, 8, 9, 1}, {12, 1, 1, 3, 1, 9}};
  for (int64_t prompt : {int64_t{1}, W - 1, W, W + 1, 2 * W - 1, 2 * W, 2 * W + 1})
    splits.push_back(prompt_then_steps(prompt));
  for (const std::vector<int64_t>& pieces : splits) {
    const Tensor got = in_pieces(model, pieces);
    int64_t at = 0;
    for (int64_t n : pieces) {
      const Tensor& want = n == 1 && at > 0 ? narrow_rows : wide_rows;
      BOOST_TEST_CONTEXT("a piece of " << n << " tokens at " << at)
      BOOST_TEST(is_close(rows(got, at, at + n), rows(want, at, at + n), 1e-10));
      at += n;
    }
  }
}

BOOST_AUTO_TEST_CASE(t1_agrees_with_the_full_pass_up_to_the_window) {
  NoGrad off;
  const models::Dcformer model = mixing_model("dcformer-tiny", {{"profile.name", "T1"}});
  const Tensor want = full_pass(model);
  for (int64_t prompt : {int64_t{1}, int64_t{3}, W - 1}) {
    const Tensor got = in_pieces(model, prompt_then_steps(prompt));
    BOOST_TEST(is_close(rows(got, 0, W), rows(want, 0, W), 1e-10), prompt);
    BOOST_TEST(!is_close(rows(got, W, W + 1), rows(want, W, W + 1), 1e-6), prompt);
  }
}

// Beams, several continuations of one prompt: each sees its own tokens, whatever the others append.
BOOST_AUTO_TEST_CASE(clones_of_a_cache_are_independent) {
  static_assert(!std::is_copy_constructible_v<models::KvCache> && !std::is_copy_constructible_v<nn::LayerCache>);
  NoGrad off;
  const models::Dcformer model = mixing_model("dcformer-tiny", {{"profile.name", "J"}});
  const auto token = [](int64_t id) { return from_vector(std::vector<int64_t>{id, id}, {2, 1}); };
  const auto continued = [&](models::KvCache& cache, const std::vector<int64_t>& ids) {
    Tensor h;
    for (int64_t id : ids) h = model.hidden(token(id), &cache);
    return h;
  };
  const auto prefilled = [&] {
    models::KvCache cache = model.make_cache(kLongest);
    model.hidden(all_ids().sliced(1, 0, W + 3).clone(), &cache);
    return cache;
  };
  models::KvCache a = prefilled(), alone = prefilled(), b_alone = prefilled();
  models::KvCache b = a.clone();
  continued(a, {6});
  const Tensor other = continued(b, {7, 7, 7, 7, 7, 7, 7, 7});
  BOOST_TEST(is_close(continued(a, {8, 9}), continued(alone, {6, 8, 9}), 0));
  BOOST_TEST(is_close(other, continued(b_alone, {7, 7, 7, 7, 7, 7, 7, 7}), 0));
  BOOST_TEST(a.position() == W + 6);
  BOOST_TEST(b.position() == W + 11);
  const models::KvCache moved = std::move(a);
  BOOST_TEST(moved.position() == W + 6);
}

BOOST_AUTO_TEST_CASE(local_layers_forget_and_global_layers_do_not) {
  NoGrad off;
  const models::Dcformer model = mixing_model("dcformer-tiny", {{"profile.name", "T1"}});
  models::KvCache cache = model.make_cache(kLongest);
  for (int64_t at = 0; at < kLongest; ++at) {
    model.hidden(all_ids().sliced(1, at, at + 1).clone(), &cache);
    BOOST_TEST(cache.position() == at + 1);
    BOOST_TEST(cache.layers[0].length() <= 2 * (W + 1));
    BOOST_TEST(cache.layers[1].length() == at + 1);
  }
  BOOST_TEST(cache.layers[0].first() > 0);
  BOOST_TEST(throws_with([&] { model.hidden(all_ids().sliced(1, 0, 1).clone(), &cache); }, "is full"));
}

BOOST_AUTO_TEST_SUITE_END()
