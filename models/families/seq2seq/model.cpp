#include "braid/models/families/seq2seq/model.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd.h"
#include "braid/autograd/detail/check.h"
#include "braid/models/families/seq2seq/family.h"

namespace braid::models {

namespace {

std::vector<int64_t> source_lengths(const Batch& batch) {
  return batch.has(kSourceLengths) ? batch.at(kSourceLengths).to_vector<int64_t>() : std::vector<int64_t>();
}

void check_lengths(const std::vector<int64_t>& lengths, const Tensor& source_ids) {
  const int64_t B = source_ids.dim(0), S = source_ids.dim(1);
  check(std::ssize(lengths) == B, ErrorKind::input,
        [&] { return str("source_lengths must be (", B, "), found ", lengths.size(), " lengths"); });
  for (size_t b = 0; b < lengths.size(); ++b)
    check(lengths[b] >= 1 && lengths[b] <= S, ErrorKind::input,
          [&] { return str("the length of source ", b, " is ", lengths[b], ", expected 1 to ", S); });
}

// Each source and what follows it as two documents of the encoder.
std::vector<Document> with_padding_apart(const std::vector<int64_t>& lengths, int64_t S) {
  std::vector<Document> documents;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto sample = static_cast<int64_t>(b);
    documents.push_back({sample, 0, lengths[b]});
    if (lengths[b] < S) documents.push_back({sample, lengths[b], S});
  }
  return documents;
}

}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqConfig& config, RandomKey key, const dist::ProcessMesh& mesh) : config_(config) {
  check(mesh.tensor.size() == 1 && mesh.context.size() == 1, ErrorKind::setting, [&] {
    return str("a model of type seq2seq is not sharded: expected parallel.tensor=1 and parallel.context=1, found ",
               mesh.tensor.size(), " and ", mesh.context.size(), "; use parallel.data");
  });
  const Seq2SeqConfig& c = config_;
  const int64_t D = c.hidden_size;
  const double deviation = 1 / std::sqrt(static_cast<double>(c.mup_base_width == 0 ? D : c.mup_base_width));
  const nn::Init init = nn::Init::normal(deviation);
  embeddings_ = nn::Embedding(c.vocab_size, D, init, child(key, "embeddings"));
  const auto positions = [&](int64_t longest, const char* name) {
    return nn::parameter(init.make({longest, D}, child(key, name)));
  };
  source_positions_ = positions(c.max_source_length, "source_positions");
  target_positions_ = positions(c.max_target_length, "target_positions");
  const RandomKey encoder = child(key, "encoder"), decoder = child(key, "decoder");
  for (int64_t i = 0; i < c.encoder_layers; ++i) encoder_.emplace_back(seq2seq_block(c, i, false), child(encoder, i));
  for (int64_t i = 0; i < c.decoder_layers; ++i) decoder_.emplace_back(c, i, child(decoder, i));
  encoder_norm_ = nn::LayerNorm(D, c.layer_norm_eps);
  norm_ = nn::LayerNorm(D, c.layer_norm_eps);
  output_ = nn::Linear(D, c.vocab_size, {.init = nn::Init::normal(deviation / c.mup_ratio()), .takes_lora = false},
                       child(key, "output"));
}

// ids (B, T), of which column 0 stands at position `first` -> (B, T, D)
Tensor Seq2Seq::embed(const Tensor& ids, const Tensor& positions, int64_t first) const {
  const int64_t T = ids.dim(1);
  check(first + T <= positions.dim(0), "seq2seq", [&] {
    return str("a sequence is longer than the model's: expected at most ", positions.dim(0), ", found ", first + T);
  });
  return add(embeddings_(ids), slice(positions, 0, first, first + T));
}

Seq2Seq::Encoded Seq2Seq::encode(const Tensor& source_ids, const nn::ActivationObserver* observer,
                                 const std::vector<int64_t>& lengths) const {
  return encode(source_ids, lengths, nn::Pass{.observer = observer, .part = "encoder."});
}

Seq2Seq::Encoded Seq2Seq::encode(const Tensor& source_ids, std::vector<int64_t> lengths, nn::Pass pass) const {
  const int64_t S = source_ids.dim(1);
  if (!lengths.empty()) check_lengths(lengths, source_ids);
  if (std::ranges::all_of(lengths, [S](int64_t length) { return length == S; })) lengths.clear();
  if (!lengths.empty()) pass.documents = std::make_shared<const std::vector<Document>>(with_padding_apart(lengths, S));
  const Tensor embedded = pass.dropped(embed(source_ids, source_positions_, 0), "embedding");
  nn::ResidualStream x = pass.observe(embedded, "hidden.0");
  for (size_t i = 0; i < encoder_.size(); ++i) {
    x = encoder_[i](x, pass.layer(i));
    x.observe(pass, "hidden.", i + 1);
  }
  const Tensor states = pass.observe(x.with(encoder_norm_).y, "final_norm");  // (B, S, D)
  Encoded encoded;
  for (const Seq2SeqDecoderBlock& block : decoder_) encoded.layers.push_back(block.source(states, lengths));
  return encoded;
}

Tensor Seq2Seq::decode(const Tensor& input_ids, const Encoded& source, KvCache* cache,
                       const nn::ActivationObserver* observer) const {
  const std::vector<nn::AttentionCache*> caches = cache ? cache->of_layers() : std::vector<nn::AttentionCache*>();
  return decode(input_ids, source, nn::Pass{.caches = caches, .observer = observer, .part = "decoder."},
                cache ? cache->position() : 0);
}

Tensor Seq2Seq::decode(const Tensor& input_ids, const Encoded& source, const nn::Pass& pass, int64_t first) const {
  const Tensor embedded = pass.dropped(embed(input_ids, target_positions_, first), "embedding");
  nn::ResidualStream x = pass.observe(embedded, "hidden.0");
  for (size_t i = 0; i < decoder_.size(); ++i) {
    x = decoder_[i](x, source.layers.at(i), pass.layer(i));
    x.observe(pass, "hidden.", i + 1);
  }
  return pass.observe(x.with(norm_).y, "final_norm");  // (B, T, D)
}

KvCache Seq2Seq::make_cache(int64_t capacity) const {
  KvCache cache;
  for (size_t i = 0; i < decoder_.size(); ++i) cache.layers.emplace_back(capacity, 0);
  return cache;
}

Tensor Seq2Seq::loss_sum(const Batch& batch) const {
  const nn::SampleRandom random = dropout_ > 0 ? sample_random(batch) : nn::SampleRandom();
  const auto part = [&](const char* name) { return nn::Pass{.random = random.child(name), .dropout = dropout_}; };
  const Encoded source = encode(batch.at("source_ids"), source_lengths(batch), part("encoder"));
  const Tensor hidden = decode(batch.at("input_ids"), source, part("decoder"), 0);
  return linear_cross_entropy(hidden, output_.weight(), batch.at("targets"), LinearLossOptions{.z_loss = z_loss_});
}

Batch Seq2Seq::blank_batch(int64_t samples, int64_t) const {
  const Tensor target = zeros({samples, config_.max_target_length}, DType::i32);
  Batch batch{{"source_ids", zeros({samples, config_.max_source_length}, DType::i32)},
              {"input_ids", target},
              {"targets", target}};
  if (dropout_ > 0) batch.add({kSampleKeys, zeros({samples}, DType::i64)});
  return batch;
}

int64_t Seq2Seq::count_targets(const Batch& batch) const {
  int64_t n = 0;
  for (const int64_t target : batch.at("targets").to_vector<int64_t>()) n += target >= 0;
  return n;
}

void Seq2Seq::check_batch(const Batch& batch) const {
  const Tensor source = batch.at("source_ids"), input = batch.at("input_ids"), targets = batch.at("targets");
  const auto fits = [&](const char* name, const Tensor& ids, int64_t longest) {
    check(ids.rank() == 2 && ids.dim(0) == source.dim(0) && ids.dim(1) <= longest, ErrorKind::input, [&] {
      return str(name, " must be (B, at most ", longest, "), found ", ids.shape(), " beside source_ids ",
                 source.shape());
    });
  };
  fits("source_ids", source, config_.max_source_length);
  fits("input_ids", input, config_.max_target_length);
  check(targets.shape() == input.shape(), ErrorKind::input,
        [&] { return str("targets ", targets.shape(), " do not match input_ids ", input.shape()); });
  check_ids("seq2seq", "source symbol", source, config_.vocab_size);
  check_ids("seq2seq", "input symbol", input, config_.vocab_size);
  check_ids("seq2seq", "target", targets, config_.vocab_size, true);
  if (batch.has(kSourceLengths)) check_lengths(source_lengths(batch), source);
  check_keys_and_sources(batch);
}

void Seq2Seq::observe(const Batch& batch, const nn::ActivationObserver& observer) const {
  decode(batch.at("input_ids"), encode(batch.at("source_ids"), &observer, source_lengths(batch)), nullptr, &observer);
}

void Seq2Seq::set_attention_workspace(int64_t bytes) {
  for (nn::Block& block : encoder_) block.attention_workspace(bytes);
  for (Seq2SeqDecoderBlock& block : decoder_) block.attention_workspace(bytes);
}

void Seq2Seq::visit(nn::Visitor& v) const {
  v("embeddings", embeddings_);
  v("source_positions", source_positions_);
  v("target_positions", target_positions_);
  for (size_t i = 0; i < encoder_.size(); ++i) v(str("encoder.layers.", i), encoder_[i]);
  v("encoder.norm", encoder_norm_);
  for (size_t i = 0; i < decoder_.size(); ++i) v(str("decoder.layers.", i), decoder_[i]);
  v("decoder.norm", norm_);
  v("output", output_);
}

}  // namespace braid::models
