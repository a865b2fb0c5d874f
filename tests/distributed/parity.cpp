#include "tests/distributed/parity.h"

#include <cmath>
#include <mutex>

#include "braid/models/families/dcformer/config_keys.h"
#include "braid/nn/attention/variant.h"

namespace braid::test {

namespace {
// Whether a variant has a kind of its name, since it cannot be beside all those of "variants".
bool stands_alone(const nn::AttentionVariantRule& rule) { return rule.queries_per_head > 1 || rule.composed; }
}  // namespace

std::vector<std::string> parity_kinds() {
  std::vector<std::string> kinds = {
      "dcformer", "dcformer-g4", "dcpythia",         "transformer", "dcformer-static-mgate",
      "llama",    "grouped",     "vocabulary-50257", "variants",    "mudd",
      "attnres",  "mhc",         "capped",           "olmo2",       "gemma"};
  for (const nn::AttentionVariantRule& rule : nn::attention_variants())
    if (stands_alone(rule)) kinds.push_back(rule.name);
  return kinds;
}

models::DcformerConfig parity_config(const std::string& kind) {
  if (kind == "llama-folder")  // of the family whose files have queries, keys and values apart
    return models::configure("llama-tiny", {{"vocab_size", "61"},
                                            {"dim", "24"},
                                            {"n_layer", "2"},
                                            {"n_head", "4"},
                                            {"head_dim", "6"},
                                            {"intermediate_size", "35"},
                                            {"block_size", "64"},
                                            {"initializer_std", "0.2"}});
  bool pythia = kind == "dcpythia";
  models::DcformerConfig c = models::unresolved_preset(pythia                  ? "dcpythia-tiny"
                                                       : kind == "transformer" ? "transformer-tiny"
                                                                               : "dcformer-tiny");
  c.vocab_size = kind == "vocabulary-50257" ? 50257 : 61;
  c.dim = 24;
  c.n_layer = 2;
  c.n_head = kind == "dcformer" ? 5 : 4;  // over two ranks: three heads and two
  c.head_dim = pythia ? 8 : 6;
  c.intermediate_size = 35;
  c.window_size = 7;
  c.block_size = 64;
  c.initializer_std = 0.2;
  c.layer_windows.clear();
  if (kind == "dcformer-g4") c.profile.num_groups = 4;
  if (kind == "llama") {  // on four tensor ranks two have no key/value head of their own
    c.use_dcmha = false;
    c.use_qk_norm = false;
    c.window_size = 0;
    c.n_kv_head = 2;
    c.attention_bias = c.mlp_bias = c.tie_word_embeddings = true;
    c.rope_scaling = {.kind = models::RopeScaling::Kind::llama3, .factor = 4, .original_block_size = 16};
  }
  if (kind == "grouped") {  // over two ranks query heads 0-2 and 3-5 read key/value heads 0, 0, 1 and 1, 2, 2
    c.n_head = 6;
    c.n_kv_head = 3;
    c.qkv_bias = true;
    c.profile.num_groups = 2;  // on four ranks they span ranks
    c.hidden_act = models::Activation::gelu_tanh;
    c.compose_init = models::ComposeInit::identity;
  }
  if (kind == "variants") {  // all that can be together
    c.n_kv_head = 4;
    for (const nn::AttentionVariantRule& rule : nn::attention_variants())
      if (!stands_alone(rule)) c.attention.push_back(rule.name);
    c.compose_layers = "last:1";
  }
  for (const nn::AttentionVariantRule& rule : nn::attention_variants()) {
    if (kind != rule.name) continue;
    c.attention = {kind};
    c.use_dcmha = !rule.composed;
  }
  if (kind == "olmo2") {  // on four tensor ranks two have no key/value head of their own
    c.norm_place = nn::NormPlace::post;
    c.qk_norm_all_heads = true;
    c.n_kv_head = 2;
  }
  if (kind == "gemma") {  // what Gemma 2 and 3 have, with Compose
    c.norm_place = nn::NormPlace::both;
    c.norm_offset = c.scale_embeddings = c.tie_word_embeddings = true;
    c.attention_softcap = 1.5;
    c.score_dim = 5;
    c.rope_local_base = 100;
  }
  if (kind == "mudd" || kind == "attnres" || kind == "mhc") c.residual = kind;
  if (kind == "mudd") c.n_kv_head = 2;
  if (kind == "capped") {  // with a z-loss, see train()
    c.logit_softcap = 1.5;
    c.tie_word_embeddings = true;
  }
  if (kind == "dcformer-static-mgate") {
    c.profile.static_proj = true;
    c.mgate = true;
    c.mgate_dim = 5;
  }
  if (kind == "vocabulary-50257") c.n_layer = 1;
  models::resolve(c);
  return c;
}

models::Batch step_batch(const models::DcformerConfig& config, int64_t step, int64_t samples, int64_t T) {
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < samples * T; ++i) {
    auto bits = [&](uint64_t what) {
      return random_bits(static_cast<uint64_t>(i), {static_cast<uint64_t>(step), what});
    };
    ids.push_back(bits(1) % config.vocab_size);
    bool counted = i / T == 0 ? i % T == 3 : bits(3) % 4 > 0;  // the first sample has one target
    targets.push_back(counted ? static_cast<int64_t>(bits(2) % config.vocab_size) : -100);
  }
  return models::text_batch(from_vector(ids, {samples, T}), from_vector(targets, {samples, T}));
}

models::Batch with_documents(const models::Batch& batch) {
  const Tensor ids = batch.at("input_ids");
  std::vector<int32_t> positions;
  for (int64_t i = 0; i < ids.numel(); ++i) {
    const bool begins = i % ids.dim(1) == 0 || random_bits(static_cast<uint64_t>(i), {17, 0}) % 6 == 0;
    positions.push_back(begins ? 0 : positions.back() + 1);
  }
  return models::text_batch(ids, batch.at("targets"), from_vector(positions, ids.shape()));
}

std::vector<models::Batch> share_of(const models::Batch& all, const dist::ProcessMesh& mesh) {
  int64_t half = all.samples() / 2;
  std::vector<models::Batch> out;
  for (int64_t m = 0; m < 2; ++m) {
    dist::Range mine = dist::even_partition(half, mesh.data.size()).single(mesh.data.rank());
    int64_t begin = m * half + mine.begin, end = m * half + mine.end;
    out.push_back(all.slice(begin, end));
  }
  return out;
}

std::unique_ptr<models::Dcformer> make_model(const models::DcformerConfig& config, const dist::ProcessMesh& mesh,
                                             DType dtype, bool recompute) {
  auto model = std::make_unique<models::Dcformer>(config, RandomKey{3, 0}, mesh);
  // At its start a sum of MUDD is what the norm behind it divides by: its weights have gradients of rounding errors
  // alone, which AdamW enlarges. These parameters are whole on every rank.
  for (nn::NamedTensor& p : nn::parameters(*model))
    if (p.name.starts_with("dynamic_dense") || p.name.starts_with("dense_bs"))
      p.value.copy_(randn(p.value.shape(), child({3, 1}, p.name.c_str())) * 0.3);
  model->to(dtype);
  model->set_recompute(recompute);
  return model;
}

namespace {
void move_by_last_places(models::LanguageModel& model, uint64_t salt, uint64_t step) {
  for (nn::NamedTensor& p : nn::parameters(model)) {
    auto* w = p.value.mutable_data<double>();
    for (int64_t i = 0; i < p.value.numel(); ++i) {
      uint32_t choice = random_bits(static_cast<uint64_t>(i), {salt, step}) % 3;
      if (choice > 0) w[i] = std::nextafter(w[i], choice == 1 ? INFINITY : -INFINITY);
    }
  }
}
}  // namespace

std::map<std::string, std::vector<double>> unsharded(const std::vector<models::LocalTensor>& tensors,
                                                     const dist::Communicator& world) {
  std::map<std::string, std::vector<double>> out;
  for (const models::LocalTensor& t : tensors) {
    Tensor full = zeros({numel(t.shape)}, DType::f64);
    for (const dist::Span& s : t.spans) {
      const Tensor values = t.values.reshaped({t.values.numel()}).sliced(0, s.local, s.local + s.count);
      full.sliced(0, s.full, s.full + s.count).copy_(values);
    }
    out[t.name] = world.all_reduce(full).to_vector<double>();
  }
  return out;
}

nn::OptimizerOptions parity_optimizer(const std::string& rule) {
  return {.name = rule, .weight_decay = 0.1, .decay = nn::OptimizerOptions::Decay::matrices};
}

Record train(const models::DcformerConfig& config, const dist::ProcessMesh& mesh, int64_t steps, int64_t samples,
             int64_t T, DType dtype, bool recompute, double lr, const Noise& noise, bool documents, double dropout,
             const nn::OptimizerOptions& optimizer) {
  DType masters = dtype == DType::bf16 ? DType::f32 : dtype;
  std::unique_ptr<models::LanguageModel> model = make_model(config, mesh, masters, recompute);
  model->set_dropout(dropout);
  model->set_z_loss(config.logit_softcap > 0 ? 0.1 : 0);
  models::Trainer trainer(*model, optimizer, 1.0, mesh, dtype);
  Record record;
  const auto batch = [&](int64_t step) {
    models::Batch made = step_batch(config, step, samples, T);
    if (documents) made = with_documents(made);
    std::vector<int64_t> keys;
    for (int64_t b = 0; b < samples; ++b) keys.push_back(1000 * step + b);
    if (dropout > 0) made.add({models::kSampleKeys, from_vector(keys, {samples})});
    return made;
  };
  for (int64_t step = 0; step < steps; ++step) {
    if (step < noise.steps) move_by_last_places(*model, noise.salt, static_cast<uint64_t>(step));
    const models::StepMetrics r = trainer.forward_backward(share_of(batch(step), mesh));
    if (step == 0) record.gradients = unsharded(trainer.local_gradients(), mesh.world);
    trainer.apply(lr);
    record.losses.push_back(r.loss);
    record.norms.push_back(r.grad_norm);
  }
  record.validation = models::evaluate(*model, share_of(batch(1000), mesh), mesh);
  record.weights = unsharded(trainer.local_state().weights, mesh.world);
  return record;
}

const Record& reference(const std::string& kind, int64_t steps, int64_t samples, int64_t T, double lr) {
  static std::mutex mutex;
  static std::map<std::string, Record> known;
  std::lock_guard lock(mutex);
  std::string key = kind + " " + std::to_string(steps) + " " + std::to_string(samples) + " " + std::to_string(T) + " " +
                    std::to_string(lr);
  auto at = known.find(key);
  if (at == known.end())
    at = known.emplace(key, train(parity_config(kind), {}, steps, samples, T, DType::f64, false, lr)).first;
  return at->second;
}

void expect_parity(const Record& got, const Record& want, double tolerance, double weight_tolerance, bool root,
                   const std::string& what) {
  expect_close({got.losses[0]}, {want.losses[0]}, tolerance, what + ", loss of the first step");
  expect_close({got.norms[0]}, {want.norms[0]}, tolerance, what + ", gradient norm of the first step");
  expect(got.gradients.size() == want.gradients.size(), what + ", number of gradients");
  for (const auto& [name, g] : want.gradients) {
    auto at = got.gradients.find(name);
    expect(at != got.gradients.end(), what + ", gradient of " + name + " is missing");
    expect_close(at->second, g, tolerance, what + ", gradient of " + name);
  }
  expect_close(got.losses, want.losses, weight_tolerance, what + ", losses");
  expect_close({got.validation}, {want.validation}, weight_tolerance, what + ", validation loss");
  if (!root) return;
  expect(got.weights.size() == want.weights.size(), what + ", number of weights");
  for (const auto& [name, w] : want.weights)
    expect_close(got.weights.at(name), w, weight_tolerance, what + ", " + name);
}

}  // namespace braid::test
