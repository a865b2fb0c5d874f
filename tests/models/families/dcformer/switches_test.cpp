// Every combination of the switches of DCMHA: what is switched off has no parameters, no cost and no effect, and what
// is left trains, resumes, generates and is dumped.
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "braid/autograd.h"
#include "braid/models/cost/size.h"
#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/inference/generate.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"
#include "braid/tensor/memory.h"
#include "braid/tensor/trace_device.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"
#include "tests/support/switches.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(switches)

namespace {

constexpr int64_t T = 12;

Tensor some_ids(int64_t seed) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 2 * T; ++i) ids.push_back((i * 7 + i * i + 5 * seed) % 31);
  return from_vector(ids, {2, T});
}

Batch batch_of(int64_t step) { return text_batch(some_ids(step), some_ids(step + 1)); }

std::map<std::string, Tensor> by_name(const nn::Module& model) {
  std::map<std::string, Tensor> parameters;
  for (const nn::NamedTensor& p : nn::parameters(model)) parameters[p.name] = p.value.detach();
  return parameters;
}

// The parameters of the weight generator that the switches leave.
std::set<std::string> expected_parameters(const DcformerConfig& c) {
  const Profile& p = c.profile;
  const bool dynamic = c.use_dcmha && (p.pre_compose || p.post_compose) && (p.query_side || p.key_side);
  std::set<std::string> names;
  if (dynamic) names.insert("dd");
  if (dynamic && p.rank > 0) names.insert({"dw1", "qkw"});
  if (c.use_dcmha && p.static_proj && p.pre_compose) names.insert("pre_proj.w");
  if (c.use_dcmha && p.static_proj && p.post_compose) names.insert("post_proj.w");
  return names;
}

std::set<std::string> found_parameters(const nn::Module& model) {
  const std::string prefix = "layers.1.attention.dyn_w_proj.";
  std::set<std::string> names;
  for (const auto& [name, value] : by_name(model))
    if (name.starts_with(prefix)) names.insert(name.substr(prefix.size()));
  return names;
}

// The observer of a pass gets one name a layer, branch and factor of the dynamic weights, one a layer and stage of the
// static matrices, and the maps of every layer.
void check_observed(const Dcformer& model) {
  const DcformerConfig& c = model.config();
  std::map<std::string, int64_t> of_branch;
  int64_t weights = 0, maps = 0;
  const auto receive = [&](const std::string& name, const Tensor&) {
    maps += name.find(".attn_probs") != std::string::npos;
    if (name.find(".dyn.") == std::string::npos) return;
    ++weights;
    for (const std::string& branch : c.profile.branches) of_branch[branch] += name.find(branch) != std::string::npos;
  };
  model.observe(batch_of(0), {receive, [](const std::string&) { return true; }});
  const int64_t factors = c.profile.rank > 0 ? 3 : 1, matrices = c.profile.pre_compose + c.profile.post_compose;
  const int64_t of_layer = c.dynamic_branches() * factors + (c.use_dcmha && c.profile.static_proj ? matrices : 0);
  BOOST_TEST(weights == c.n_layer * of_layer);
  BOOST_TEST(maps == 2 * c.n_layer);
  for (const auto& [branch, found] : of_branch) BOOST_TEST(found == c.n_layer * factors, branch);
}

// The complete model, its dynamic weights and static matrices those of `some` where `some` has them and without effect
// elsewhere. Rank 0 has its counterpart in rank 1.
Dcformer completed(const Dcformer& some) {
  const DcformerConfig& c = some.config();
  const bool gates_alone = c.profile.rank == 0;
  Dcformer all(configure(c, {{"use_dcmha", "true"},
                             {"profile.rank", std::to_string(std::max<int64_t>(1, c.profile.rank))},
                             {"profile.pre_compose", "true"},
                             {"profile.post_compose", "true"},
                             {"profile.query_side", "true"},
                             {"profile.key_side", "true"},
                             {"profile.static_proj", "true"},
                             {"profile.gates", "true"}}),
               {8, 0});
  nn::freeze(all);
  all.to(DType::f64);
  const std::map<std::string, Tensor> have = by_name(some);
  const int64_t M = c.group_heads(), C = c.dynamic_branches();
  for (nn::NamedTensor& p : nn::parameters(all)) {
    const bool dynamic = p.name.find(".dyn_w_proj.") != std::string::npos, first = p.name.ends_with(".dw1");
    if (dynamic && !first) p.value.fill(0);
    const auto own = have.find(p.name);
    if (own == have.end()) continue;
    if (!dynamic || p.name.ends_with("_proj.w")) {
      p.value.copy_(own->second);
      continue;
    }
    if (gates_alone && !p.name.ends_with(".dd")) continue;
    // dw1 (D, G, C, K), qkw (G, C, K, 2R, M), dd (D, G, C M): branch by branch to its place in the complete list.
    const bool gates = p.name.ends_with(".dd");
    const int axis = p.name.ends_with(".qkw") ? 1 : 2;
    const int64_t size = gates ? M : 1;
    for (int64_t i = 0; i < C; ++i) {
      const std::vector<std::string>& order = all.config().profile.branches;
      const int64_t at = std::ranges::find(order, c.profile.branches[static_cast<size_t>(i)]) - order.begin();
      p.value.sliced(axis, at * size, (at + 1) * size).copy_(own->second.sliced(axis, i * size, (i + 1) * size));
    }
  }
  return all;
}

Tensor in_pieces(const Dcformer& model) {
  KvCache cache = model.make_cache(T);
  std::vector<Tensor> rows;
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{0, 7}, {7, 8}, {8, 9}, {9, 12}})
    rows.push_back(model.hidden(some_ids(0).sliced(1, from, to).clone(), &cache));
  return concat(rows, 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_off_has_no_parameters_and_no_cost) {
  for (const auto& [name, c, cached_as_full] : switched_models()) {
    BOOST_TEST_CONTEXT(name) {
      const Dcformer model = shape_only_model(c);
      BOOST_TEST(found_parameters(model) == expected_parameters(c), boost::test_tools::per_element());
      const ParameterCounts counts = count_parameters(c);
      BOOST_TEST(counts.total == nn::count(model));
      const int64_t D = c.dim, N = c.n_head, M = c.group_heads(), K = c.generator_hidden(), R = c.profile.rank;
      const int64_t G = c.profile.num_groups, stages = c.profile.pre_compose + c.profile.post_compose;
      BOOST_TEST(counts.dynamic == c.dynamic_branches() * (G * D * K + G * K * 2 * R * M + D * N));
      BOOST_TEST(counts.static_proj == (c.use_dcmha && c.profile.static_proj ? stages * G * M * M : 0));
      BOOST_TEST(counts.other == 0);
      const Flops f = flops_per_token(c, 24);
      const auto branches = static_cast<double>(c.dynamic_branches());
      BOOST_TEST((f.low_rank > 0) == (branches > 0 && R > 0));
      BOOST_TEST((f.diagonal > 0) == (branches > 0));
      BOOST_TEST((f.generation > 0) == (branches > 0));
      const double pairs = f.attention / (4 * static_cast<double>(N * c.head_dim));  // unmasked, of all layers
      BOOST_TEST(f.low_rank == pairs * branches * static_cast<double>(4 * R * N), boost::test_tools::tolerance(1e-12));
      BOOST_TEST((f.static_proj > 0) == (counts.static_proj > 0));
      BOOST_TEST((read_config(write_config(c), "config.json") == c));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_left_is_the_formula_without_the_rest) {
  NoGrad off;
  for (const auto& [name, c, cached_as_full] : switched_models()) {
    BOOST_TEST_CONTEXT(name) {
      const Dcformer model = frozen_model(c), all = completed(model);
      const Tensor got = model.hidden(some_ids(0));
      BOOST_TEST(is_close(got, all.hidden(some_ids(0)), 1e-13));
      if (cached_as_full) BOOST_TEST(is_close(in_pieces(model), got, 1e-12));
    }
  }
}

// Each name of the setting compose: its parameters, and the complete formula with the other terms at zero.
BOOST_AUTO_TEST_CASE(compose_presets_are_the_formula_without_the_rest) {
  struct Row {
    const char* name;
    std::set<std::string> parameters;
    std::vector<std::string> branches;
    int64_t rank = 2, groups = 1;
  };
  const std::set<std::string> dynamic = {"dd", "dw1", "qkw"}, all = {"dd", "dw1", "qkw", "pre_proj.w", "post_proj.w"};
  const std::vector<std::string> four = {"pre_q", "pre_k", "post_q", "post_k"};
  const std::vector<Row> rows = {
      {"full", all, four},
      {"no-static", dynamic, four},
      {"talking-heads", {"pre_proj.w", "post_proj.w"}, {}},
      {"query-wise", dynamic, {"pre_q", "post_q"}},
      {"key-wise", dynamic, {"pre_k", "post_k"}},
      {"pre-only", {"dd", "dw1", "qkw", "pre_proj.w"}, {"pre_q", "pre_k"}},
      {"post-only", {"dd", "dw1", "qkw", "post_proj.w"}, {"post_q", "post_k"}},
      {"gates-only", {"dd"}, four, 0},
      {"rank-1", all, four, 1},
      {"rank-4", all, four, 4},
      {"lightweight", {"dw1", "qkw"}, {"post_q", "post_k"}, 1},
      {"groups-2", all, four, 2, 2},
      {"groups-4", all, four, 2, 4},
      {"local-only", all, four},
  };
  BOOST_TEST(rows.size() == dcformer_compose_presets().size());
  NoGrad off;
  for (const char* family : {"dcformer-tiny", "dcpythia-tiny", "llama-tiny", "gpt-neox-tiny"}) {
    for (const Row& row : rows) {
      BOOST_TEST_CONTEXT(family << " " << row.name) {
        const DcformerConfig c = configure(family, {{"compose", row.name},
                                                    {"dim", "32"},
                                                    {"n_layer", "2"},
                                                    {"n_head", "4"},
                                                    {"intermediate_size", "12"},
                                                    {"vocab_size", "31"},
                                                    {"block_size", "24"},
                                                    {"initializer_std", "0.2"}});
        BOOST_TEST(get_key(c, "compose") == row.name);
        BOOST_TEST(c.profile.branches == row.branches, boost::test_tools::per_element());
        if (row.branches.size() > 0) BOOST_TEST(c.profile.rank == row.rank);
        BOOST_TEST(c.profile.num_groups == row.groups);
        BOOST_TEST((std::ranges::count(c.layer_windows, 0) == 0) == (row.name == std::string("local-only")));
        const Dcformer model = frozen_model(c), complete = completed(model);
        BOOST_TEST(found_parameters(model) == row.parameters, boost::test_tools::per_element());
        BOOST_TEST(is_close(model.hidden(some_ids(0)), complete.hidden(some_ids(0)), 1e-13));
        BOOST_TEST((get_key(configure(c, {{"compose", "full"}, {"window_type", "G"}}), "compose") == "full"));
        BOOST_TEST(get_key(configure(c, {{"compose", "none"}}), "compose") == "none");
      }
    }
  }
  BOOST_TEST(get_key(configure("dcformer-405m", {}), "compose") == "no-static");
  BOOST_TEST(get_key(configure("transformer-405m", {}), "compose") == "none");
  BOOST_TEST(get_key(configure("dcformer-tiny", {{"profile.rank", "3"}}), "compose") == "custom");
  // A setting beside the name changes it, in any order.
  BOOST_TEST(!configure("dcformer-tiny", {{"profile.key_side", "false"}, {"compose", "full"}}).profile.key_side);
}

BOOST_AUTO_TEST_CASE(every_combination_trains_resumes_generates_and_is_dumped) {
  for (const auto& [name, c, cached_as_full] : switched_models(3)) {
    BOOST_TEST_CONTEXT(name) {
      const TempFolder run;
      Dcformer model(c, {1, 0});
      std::map<std::string, Tensor> before;
      for (const auto& [parameter, value] : by_name(model)) before[parameter] = value.clone();
      Trainer trainer(model, {}, 1.0);
      for (int64_t step : {0, 1}) BOOST_TEST(std::isfinite(trainer.step({batch_of(step)}, 1e-2).loss));
      for (const auto& [parameter, value] : by_name(model))
        BOOST_TEST(!is_close(value, before.at(parameter), 0), parameter);
      CheckpointWriter(run.path, 2).save(trainer, nullptr, {2, 0, 0, 1, T, "data"}, "");

      Dcformer resumed(c, {99, 0});
      Trainer continued(resumed, {}, 1.0);
      load_checkpoint(run.path / step_name(2), continued);
      const LoadedModel loaded = load_model(run.path / step_name(2));
      const std::vector<int32_t> prompt = {3, 1, 4, 1, 5, 9, 2};
      const auto text = [&](const Dcformer& m) { return generate(m, prompt, 8, {.temperature = 0}).tokens; };
      BOOST_TEST(text(dcformer(loaded)) == text(model), boost::test_tools::per_element());
      check_observed(dcformer(loaded));

      BOOST_TEST(continued.step({batch_of(2)}, 1e-2).loss == trainer.step({batch_of(2)}, 1e-2).loss);
      const std::map<std::string, Tensor> want = by_name(model);
      for (const auto& [parameter, value] : by_name(resumed))
        BOOST_TEST(is_close(value, want.at(parameter), 0), parameter);
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_follows_the_switches) {
  for (const Keys& more :
       {Keys{{"profile.key_side", "false"}}, Keys{{"profile.query_side", "false"}},
        Keys{{"profile.post_compose", "false"}, {"profile.static_proj", "true"}},
        Keys{{"profile.query_side", "false"}, {"profile.key_side", "false"}}, Keys{{"profile.rank", "0"}}}) {
    Keys keys = {{"dim", "64"}, {"n_layer", "3"}, {"n_head", "8"}, {"vocab_size", "50"}, {"window_size", "null"}};
    keys.insert(keys.end(), more.begin(), more.end());
    const DcformerConfig c = configure("dcformer-tiny", keys);
    Dcformer model(c, RandomKey{});
    const Tensor ids = zeros({2, 96}, DType::i64);
    const int64_t before = memory_stats(kCpu).current;
    const Tensor loss = model.loss_sum(ids, ids);
    const int64_t kept = memory_stats(kCpu).current - before;
    {
      const TraceDevice trace;
      const Dcformer same(c, RandomKey{});
      const Tensor traced_ids = zeros({2, 96}, DType::i64);
      const int64_t traced = memory_stats(kCpu).current;
      const Tensor traced_loss = same.loss_sum(traced_ids, traced_ids);
      BOOST_TEST(memory_stats(kCpu).current - traced == kept, more.front().first);
    }

    KvCache cache = model.make_cache(96);
    const NoGrad off;
    model.hidden(ids, &cache);
    BOOST_TEST(static_cast<double>(cache.bytes()) == cache_bytes(c, 2, 96).full, more.front().first);
  }
}

BOOST_AUTO_TEST_CASE(weights_of_what_is_off_are_rejected) {
  const TempFolder scratch;
  const DcformerConfig complete = configure(small_config(), {{"profile.static_proj", "true"}});
  save_model(Dcformer(complete, {1, 0}), nullptr, scratch.path);
  const auto rejected = [&](const Keys& settings, std::initializer_list<std::string> parts) {
    BOOST_CHECK_EXCEPTION(load_model(scratch.path, {.settings = settings}), Error,
                          [&](const Error& e) { return says(e, ErrorKind::input, parts); });
  };
  rejected({{"profile.key_side", "false"}},
           {"layers.0.attention.dyn_w_proj.dw1 has shape (32, 1, 4, 16), expected (32, 1, 2, 16); ",
            "; the model has the branches pre_q,post_q (profile.key_side is false): switch on what the weights were "
            "trained with"});
  rejected({{"profile.pre_compose", "false"}},
           {"layers.1.attention.dyn_w_proj.pre_proj.w (1, 4, 4) is not a parameter of this model "
            "(profile.pre_compose is false)",
            "; the model has the branches post_q,post_k (profile.pre_compose is false): switch on "});
  rejected({{"profile.pre_compose", "false"}, {"profile.post_compose", "false"}},
           {"layers.0.attention.dyn_w_proj.dd (32, 1, 16) is not a parameter of this model (profile.pre_compose and "
            "profile.post_compose are false)"});
  rejected(
      {{"use_dcmha", "false"}, {"profile.static_proj", "false"}},
      {"layers.0.attention.dyn_w_proj.qkw (1, 4, 16, 4, 4) is not a parameter of this model (use_dcmha is false)"});
  BOOST_TEST(load_model(scratch.path).notes.empty());
}

BOOST_AUTO_TEST_CASE(a_size_is_matched_by_the_hidden_width) {
  const DcformerSpec plain(configure("transformer-405m", {})), full(configure("dcformer-405m", {}));
  const int64_t target = models::model_size(full).parameters;
  for (const Keys& keys : {Keys{}, Keys{{"mgate", "true"}}}) {
    const auto spec = plain.with(keys);
    const auto matched = spec->with(models::matching_settings(*spec, target));
    const int64_t unit = keys.empty() ? 1 : 44, step = 24 * 3 * 1024 * unit;  // parameters of a hidden unit or block
    BOOST_TEST(std::abs(models::model_size(*matched).parameters - target) <= step / 2);
  }
  BOOST_TEST((models::matching_settings(full, target) == SettingTexts{{"intermediate_size", "2816"}}));
  BOOST_TEST((models::matching_settings(full, 1) == SettingTexts{{"intermediate_size", "1"}}));
}

BOOST_AUTO_TEST_CASE(a_published_start_mixes_heads_from_the_first_step) {
  const Keys keys = {
      {"dim", "32"}, {"n_head", "4"}, {"n_layer", "1"}, {"vocab_size", "31"}, {"initializer_std", "0.3"}};
  Dcformer model(configure("dcformer-tiny", keys), {5, 0});
  std::map<std::string, Tensor> before;
  for (const auto& [name, value] : by_name(model)) before[name] = value.clone();
  Trainer(model, {.weight_decay = 0}, 1.0).step({batch_of(1)}, 1e-3);
  for (const auto& [name, value] : by_name(model))
    BOOST_TEST((name.find("dyn_w_proj") == std::string::npos || !is_close(value, before.at(name), 0)), name);
}

// compose_init=identity: from one seed the model with Compose has the losses, and its other parameters the gradients,
// of the model without it, to the bit; one step later every Compose weight that the step could reach has changed.
BOOST_AUTO_TEST_CASE(identity_starts_at_the_model_without_compose_and_leaves_it) {
  Keys keys = {{"dim", "32"},         {"n_head", "4"},    {"n_layer", "2"},     {"intermediate_size", "48"},
               {"vocab_size", "31"},  {"n_kv_head", "2"}, {"block_size", "64"}, {"initializer_std", "0.3"},
               {"use_dcmha", "false"}};
  Dcformer plain(configure("transformer-tiny", keys), {5, 0});
  keys.back() = {"use_dcmha", "true"};
  keys.insert(keys.end(), {{"compose_init", "identity"}, {"profile.static_proj", "true"}});
  Dcformer composed(configure("transformer-tiny", keys), {5, 0});
  plain.to(DType::f64);
  composed.to(DType::f64);
  const Tensor ids = some_ids(1), targets = some_ids(2);
  const Tensor loss = plain.loss_sum(ids, targets), same = composed.loss_sum(ids, targets);
  BOOST_TEST(loss.item() == same.item());
  backward(loss);
  backward(same);
  std::map<std::string, Tensor> gradients;
  for (const nn::NamedTensor& p : nn::parameters(plain)) gradients[p.name] = grad(p.value);
  for (const nn::NamedTensor& p : nn::parameters(composed)) {
    const auto at = gradients.find(p.name);
    if (at != gradients.end()) BOOST_TEST(is_close(grad(p.value), at->second, 1e-12), p.name);
    zero_grad(p.value);
  }

  std::map<std::string, Tensor> before;
  for (const auto& [name, value] : by_name(composed)) before[name] = value.clone();
  Trainer trainer(composed, {.weight_decay = 0}, 1.0);
  trainer.step({batch_of(1)}, 1e-3);
  const std::map<std::string, Tensor> after = by_name(composed);
  for (const auto& [name, value] : before)
    BOOST_TEST(bool(is_close(after.at(name), value, 0)) == name.ends_with("dw1"), name);
  trainer.step({batch_of(2)}, 1e-3);
  for (const auto& [name, value] : by_name(composed)) BOOST_TEST(!bool(is_close(value, before.at(name), 0)), name);
}

BOOST_AUTO_TEST_SUITE_END()
