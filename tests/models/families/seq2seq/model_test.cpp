// The encoder-decoder: its derivative, what follows from the formula (formula_test.cpp), decoding with and without
// caches, batches, settings and cost.
#include "braid/models/families/seq2seq/model.h"
#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <set>

#include "braid/autograd.h"
#include "braid/models/families/seq2seq/greedy.h"
#include "braid/models/registry.h"
#include "braid/models/training/trainer.h"
#include "tests/models/families/seq2seq/support.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck_model.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(seq2seq_model)

using models::Batch, models::Seq2Seq, models::Seq2SeqConfig;

namespace {

constexpr RandomKey kKey{5, 0};

}  // namespace

BOOST_AUTO_TEST_CASE(the_derivative_of_a_whole_model) {
  Seq2SeqConfig c = small_seq2seq();
  c.decoder_layers = 1;
  Seq2Seq model = random_seq2seq(c);
  const Batch b = seq2seq_batch(c);
  const GradcheckResult result = gradcheck_model(model, [&](const auto&) { return model.loss_sum(b); });
  BOOST_TEST(result.error < 1e-7, result.where);
}

BOOST_AUTO_TEST_CASE(dropout_by_the_keys_of_the_samples) {
  Seq2Seq model = random_seq2seq(small_seq2seq());
  const Seq2Seq plain = random_seq2seq(small_seq2seq());
  model.set_dropout(0.3);
  Batch b = seq2seq_batch(model.config());
  {
    const NoGrad off;
    BOOST_TEST(model.loss_sum(b).item() == plain.loss_sum(b).item());  // no keys: evaluation
    b.add({models::kSampleKeys, from_vector(std::vector<int64_t>{3, 4}, {2})});
    model.check_batch(b);
    BOOST_TEST(plain.loss_sum(b).item() != model.loss_sum(b).item());
    const double sum = model.loss_sum(b.slice(0, 1)).item() + model.loss_sum(b.slice(1, 2)).item();
    BOOST_TEST(std::fabs(model.loss_sum(b).item() - sum) < 1e-12 * std::fabs(sum));
  }
  model.set_dropout(0.3);
  const GradcheckResult result = gradcheck_model(model, [&](const auto&) { return model.loss_sum(b); });
  BOOST_TEST(result.error < 1e-7, result.where);
}

BOOST_AUTO_TEST_CASE(without_dynamic_weights_it_is_the_plain_model) {
  const Seq2Seq plain = random_seq2seq(small_seq2seq(false)), zero = random_seq2seq(small_seq2seq());
  for (const nn::NamedTensor& p : nn::parameters(zero)) {
    const bool weight_of_compose = p.name.find(".dyn_") != std::string::npos && !p.name.ends_with("dw1");
    if (weight_of_compose) p.value.detach().fill(0);
  }
  Seq2SeqConfig identity = small_seq2seq();
  identity.compose_init = "identity";
  Seq2Seq start(identity, kKey), without(small_seq2seq(false), kKey);
  start.to(DType::f64), without.to(DType::f64);
  NoGrad off;
  const Batch b = seq2seq_batch(small_seq2seq());
  BOOST_TEST(is_close(logits_of(zero, b), logits_of(plain, b), 0));
  BOOST_TEST(is_close(logits_of(start, b), logits_of(without, b), 0));
  BOOST_TEST(!is_close(logits_of(random_seq2seq(small_seq2seq()), b), logits_of(plain, b), 1e-3));
}

BOOST_AUTO_TEST_CASE(the_loss_counts_targets_and_sums_over_samples) {
  const Seq2Seq model = random_seq2seq(small_seq2seq());
  NoGrad off;
  const Batch b = seq2seq_batch(small_seq2seq());
  BOOST_TEST(model.count_targets(b) == 7);
  double sum = 0;
  for (int64_t i = 0; i < 2; ++i) sum += model.loss_sum(b.slice(i, i + 1)).item();
  BOOST_TEST(std::fabs(model.loss_sum(b).item() - sum) < 1e-12 * sum);
  const double expected = braid::sum(cross_entropy_per_token(logits_of(model, b), b.at("targets"))).item();
  BOOST_TEST(std::fabs(sum - expected) < 1e-12 * sum);
}

BOOST_AUTO_TEST_CASE(decoding_with_a_cache_is_decoding_without) {
  // Symbols 0 fill, 1 begin, 2 end: the greedy symbols of a random model, step by step from the whole prefix.
  Seq2SeqConfig c = small_seq2seq();
  c.max_target_length = 7;
  // Seeds whose models do not answer every source alike; with the second one some rows end early.
  for (const auto& [compose, seed] : {std::pair{false, 1}, {true, 1}, {true, 5}}) {
    c.use_dcmha = compose;
    const Seq2Seq model = random_seq2seq(c, 0.8, {static_cast<uint64_t>(seed), 0});
    const Tensor source = symbol_ids({6, 5}, c.vocab_size, 3).to(DType::i32);
    NoGrad off;
    const auto found = models::decode_greedily(model, source, 7);
    const Seq2Seq::Encoded encoded = model.encode(source);
    models::KvCache cache = model.make_cache(7);
    std::vector<std::vector<int32_t>> prefix(6, {models::kPairBegin}), expected(6);
    std::vector<bool> ended(6);
    for (int64_t t = 1; t <= 7; ++t) {
      std::vector<int32_t> all, last;
      for (const auto& row : prefix) all.insert(all.end(), row.begin(), row.end()), last.push_back(row.back());
      const Tensor whole = model.decode(from_vector(all, {6, t}), encoded).sliced(1, t - 1, t);
      BOOST_TEST(is_close(model.decode(from_vector(last, {6, 1}), encoded, &cache), whole, 1e-12));
      const std::vector<int64_t> next = argmax(model.logits(whole)).to_vector<int64_t>();
      for (size_t b = 0; b < 6; ++b) {
        prefix[b].push_back(static_cast<int32_t>(next[b]));
        ended[b] = ended[b] || next[b] == models::kPairEnd;
        if (!ended[b]) expected[b].push_back(static_cast<int32_t>(next[b]));
      }
    }
    BOOST_TEST((found == expected));
    BOOST_TEST(std::set(found.begin(), found.end()).size() > 1);
    if (seed == 5) BOOST_TEST(std::ranges::any_of(found, [](const auto& row) { return row.size() < 7; }));
  }
}

// A source of its own length is read as if the padding after it did not exist: its pair gives what it gives alone.
BOOST_AUTO_TEST_CASE(sources_of_unequal_lengths) {
  const std::vector<int64_t> lengths = {3, 5, 1};
  for (const bool compose : {false, true}) {
    const Seq2SeqConfig c = small_seq2seq(compose);
    Seq2Seq model = random_seq2seq(c), alone = random_seq2seq(c);
    model.set_dropout(0.2), alone.set_dropout(0.2);
    const std::vector<int64_t> keys = {3, 4, 9};
    Batch b = seq2seq_batch(c, 3);
    b.add({models::kSourceLengths, from_vector(lengths, {3})});
    b.add({models::kSampleKeys, from_vector(keys, {3})});
    model.check_batch(b);
    const Tensor loss = model.loss_sum(b);
    backward(loss);
    double sum = 0;
    for (int64_t i = 0; i < 3; ++i) {
      const Batch whole = b.slice(i, i + 1);
      const Batch one{{"source_ids", whole.at("source_ids").sliced(1, 0, lengths[static_cast<size_t>(i)]).contiguous()},
                      {"input_ids", whole.at("input_ids")},
                      {"targets", whole.at("targets")},
                      {models::kSampleKeys, whole.at(models::kSampleKeys)}};
      const Tensor its_loss = alone.loss_sum(one);
      sum += its_loss.item();
      backward(its_loss);
    }
    BOOST_TEST(std::fabs(loss.item() - sum) < 1e-12 * sum);
    const std::vector<nn::NamedTensor> got = nn::parameters(model), want = nn::parameters(alone);
    for (size_t i = 0; i < got.size(); ++i)
      BOOST_TEST(is_close(grad(got[i].value).to_vector<double>(), grad(want[i].value).to_vector<double>(), 1e-11),
                 got[i].name);
    // Without its length a source reads its padding.
    const NoGrad off;
    const auto logits = [&](const std::vector<int64_t>& of) {
      return model.logits(model.decode(b.at("input_ids"), model.encode(b.at("source_ids"), nullptr, of)));
    };
    BOOST_TEST(!is_close(logits(lengths), logits({}), 1e-3));
    BOOST_TEST(is_close(logits({5, 5, 5}), logits({}), 0));  // bit for bit
    // Padding of any symbols, and greedy decoding.
    Tensor other = b.at("source_ids").clone();
    other.sliced(0, 0, 1).sliced(1, 3, 5).fill(7), other.sliced(0, 2, 3).sliced(1, 1, 5).fill(8);
    BOOST_TEST(is_close(model.logits(model.decode(b.at("input_ids"), model.encode(other, nullptr, lengths))),
                        logits(lengths), 0));
    const auto found = models::decode_greedily(model, other, 4, lengths);
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor source = other.sliced(0, i, i + 1).sliced(1, 0, lengths[static_cast<size_t>(i)]).contiguous();
      BOOST_TEST((models::decode_greedily(model, source, 4)[0] == found[static_cast<size_t>(i)]));
    }
  }
}

BOOST_AUTO_TEST_CASE(muon_takes_queries_and_keys_of_cross_attention_by_heads) {
  const auto stepped = [](int64_t heads) {
    Seq2Seq model(small_seq2seq(), {5, 0});
    models::Trainer trainer(model, {.name = "muon", .muon = {.heads = heads}}, 1.0);
    trainer.step({seq2seq_batch(model.config())}, 1e-2);
    std::map<std::string, Tensor> values;
    for (const nn::NamedTensor& p : nn::parameters(model)) values[p.name] = p.value.detach();
    return values;
  };
  const auto together = stepped(0), by_heads = stepped(1);
  const std::string cross = "decoder.layers.1.cross_attention.";
  std::set<std::string> changed;
  for (const auto& [name, value] : together)
    if (!is_close(value, by_heads.at(name), 0)) changed.insert(name);
  BOOST_TEST(changed.contains(cross + "wq.weight"));
  BOOST_TEST(changed.contains(cross + "wkv.weight"));
  BOOST_TEST(changed.contains("encoder.layers.0.attention.wqkv.weight"));
  BOOST_TEST(changed.size() == 2u * 2 + 3);  // wq and wkv of two layers, wqkv of three
  const auto values = [&](const auto& of) { return of.at(cross + "wkv.weight").sliced(0, 8, 16); };
  BOOST_TEST(is_close(values(together), values(by_heads), 0));
}

BOOST_AUTO_TEST_CASE(batches_are_checked) {
  const Seq2SeqConfig c = small_seq2seq();
  const Seq2Seq model = random_seq2seq(c);
  const Batch b = seq2seq_batch(c);
  model.check_batch(b);
  const auto rejects = [&](const char* name, const Tensor& value, const char* words) {
    Batch bad = b;
    std::vector<nn::NamedTensor> tensors;
    for (nn::NamedTensor t : b.tensors()) {
      if (t.name == name) t.value = value;
      tensors.push_back(t);
    }
    bad = {tensors[0], tensors[1], tensors[2]};
    BOOST_TEST(throws_with([&] { model.check_batch(bad); }, words));
  };
  rejects("source_ids", zeros({2, 6}, DType::i64), "source_ids must be (B, at most 5)");
  rejects("input_ids", zeros({3, 4}, DType::i64), "input_ids must be (B, at most 4)");
  rejects("targets", zeros({2, 3}, DType::i64), "do not match input_ids");
  rejects("source_ids", full({2, 5}, 9, DType::i64), "source symbol");
  rejects("targets", full({2, 4}, 9, DType::i64), "target");
  const auto rejects_lengths = [&](const std::vector<int64_t>& lengths, const char* words) {
    Batch bad = b;
    bad.add({models::kSourceLengths, from_vector(lengths, {std::ssize(lengths)})});
    BOOST_TEST(throws_with([&] { model.check_batch(bad); }, words));
  };
  rejects_lengths({5, 6}, "the length of source 1 is 6, expected 1 to 5");
  rejects_lengths({0, 5}, "the length of source 0 is 0, expected 1 to 5");
  rejects_lengths({5}, "source_lengths must be (2), found 1 lengths");
}

BOOST_AUTO_TEST_CASE(presets_and_settings) {
  for (const char* preset : {"seq2seq-tiny", "dc-seq2seq-tiny", "seq2seq-small", "dc-seq2seq-small"}) {
    const auto spec = models::configure_model(preset, {});
    BOOST_TEST(
        (models::differing_settings(*spec, *models::read_model_spec(spec->config_json(), "config.json")).empty()));
    const int64_t parameters = models::model_size(*spec).parameters;
    const auto wider = spec->with(models::matching_settings(*spec, parameters + 10'000));
    BOOST_TEST(std::fabs(static_cast<double>(models::model_size(*wider).parameters - parameters - 10'000)) < 1000);
  }
  const auto rejects = [](const models::SettingTexts& settings, const char* words) {
    BOOST_TEST(throws_with([&] { models::configure_model("seq2seq-tiny", settings); }, words));
  };
  rejects({{"num_attention_heads", "5"}}, "bad num_attention_heads: expected a divisor of hidden_size = 64");
  rejects({{"encoder_layer", "2"}}, "did you mean 'encoder_layers'?");
  rejects({{"decoder_layers", "0"}}, "decoder_layers");
  rejects({{"compose", "queries"}}, "compose");
  const std::string text = models::configure_model("seq2seq-tiny", {})->config_json();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  const auto rejects_file = [](const std::string& file, const char* words) {
    BOOST_TEST(throws_with([&] { models::read_model_spec(file, "config.json"); }, words));
  };
  rejects_file(with("\"hidden_size\": 64", "\"hidden_size\": 63"), "bad model in config.json");
  rejects_file(with("\"decoder_layers\"", "\"decoder_layer\""), "unknown key 'decoder_layer' in config.json");
  rejects_file(with("\"rank\"", "\"ranks\""), "unknown key 'profile.ranks' in config.json");
  const auto key_wise = models::configure_model("seq2seq-tiny", {{"compose", "key-wise"}});
  for (const nn::NamedTensor& p : key_wise->parameters()) BOOST_TEST(p.name.find("dyn_query") == std::string::npos);
}

// Without a stage no head is mixed, without a side there are no dynamic terms: their settings are not in use.
BOOST_AUTO_TEST_CASE(settings_of_dcmha_that_have_no_effect) {
  const auto in_use = [](const models::SettingTexts& settings, const std::string& name) {
    const auto spec = models::configure_model("dc-seq2seq-tiny", settings);
    const std::vector<models::ModelSetting> all = spec->settings();
    return std::ranges::find(all, name, &models::ModelSetting::name)->in_use;
  };
  for (const char* name : {"compose_init", "profile.rank", "profile.query_side"}) {
    BOOST_TEST(in_use({}, name), name);
    BOOST_TEST(!in_use({{"use_dcmha", "false"}}, name), name);
  }
  const models::SettingTexts no_stage = {{"profile.pre_compose", "false"}, {"profile.post_compose", "false"}};
  const models::SettingTexts no_side = {{"profile.query_side", "false"}, {"profile.key_side", "false"}};
  BOOST_TEST(!in_use(no_stage, "compose_init"));
  BOOST_TEST(in_use(no_side, "compose_init"));
  BOOST_TEST(!in_use(no_side, "profile.rank"));
}

// FLOPs counted by hand for one block each.
BOOST_AUTO_TEST_CASE(flops) {
  Seq2SeqConfig c = small_seq2seq(false);
  c.decoder_layers = 1;
  const double S = 5, T = 4, D = 8, F = 6, N = 2, R = 2, K = 8, V = 9;
  const double seen = T * (T + 1) / 2;                                 // pairs of the causal decoder
  const double plain = S * (8 * D * D + 4 * D * F) + S * S * 4 * D     // encoder
                       + T * (12 * D * D + 4 * D * F) + S * 4 * D * D  // decoder
                       + seen * 4 * D + T * S * 4 * D + 2 * T * D * V;
  const auto count = [](const Seq2SeqConfig& config) {
    return models::forward_flops(*Seq2Seq(config, kKey).spec(), 1).total();
  };
  BOOST_TEST(count(c) == plain);
  c.use_dcmha = true;
  const double branch = 2 * D * K + 2 * K * 2 * R * N + 2 * D * N;  // of a position
  const double pair = 4 * (4 * R * N + 2 * N) + 2 * 2 * N * N;
  BOOST_TEST(count(c) == plain + branch * (4 * S + 4 * T + 2 * T + 2 * S) + pair * (S * S + seen + T * S));
}

BOOST_AUTO_TEST_SUITE_END()
