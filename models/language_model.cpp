#include "braid/models/language_model.h"

#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/models/inference/sequence_pool.h"
#include "braid/models/model_spec.h"

namespace braid::models {

KvCache KvCache::clone() const {
  KvCache other;
  for (const nn::LayerCache& layer : layers) other.layers.push_back(layer.clone());
  return other;
}

int64_t KvCache::bytes() const {
  int64_t sum = 0;
  for (const nn::LayerCache& layer : layers) sum += layer.bytes();
  return sum;
}

std::vector<nn::AttentionCache*> KvCache::of_layers() {
  std::vector<nn::AttentionCache*> caches;
  for (nn::LayerCache& layer : layers) caches.push_back(&layer);
  return caches;
}

std::unique_ptr<SequencePool> LanguageModel::make_sequence_pool(int64_t positions) const {
  return make_separate_pool(*this, positions);
}

Tensor LanguageModel::loss_of_hidden(const Tensor& hidden, const Tensor& targets) const {
  return sum(cross_entropy_per_token(logits(hidden), targets));
}

Batch LanguageModel::blank_batch(int64_t samples, int64_t seq_len) const {
  check(samples >= 1 && seq_len >= 1, ErrorKind::setting, [&] {
    return str("bad batch: expected at least one sequence of at least one token, found ", samples, " of ", seq_len);
  });
  Batch batch = text_batch(zeros({samples, seq_len}, DType::i32), zeros({samples, seq_len}, DType::i32));
  if (random_training()) batch.add({kSampleKeys, zeros({samples}, DType::i64)});
  return batch;
}

int64_t LanguageModel::count_targets(const Batch& batch) const {
  int64_t n = 0;
  for (int64_t target : batch.at("targets").to_vector<int64_t>()) n += target >= 0;
  return n;
}

void LanguageModel::check_batch(const Batch& batch) const {
  check_ids("loss_sum", "token id", batch.at("input_ids"), vocab_size());
  check_ids("loss_sum", "target", batch.at("targets"), vocab_size(), true);
  check_keys_and_sources(batch);
  if (!batch.has(kPositions)) return;
  check(separates_documents(), ErrorKind::setting, [&] {
    return "a model of type " + spec()->model_type() +
           " cannot keep attention within documents: expected a batch without positions (data.documents=joined)";
  });
  const Tensor positions = batch.at(kPositions);
  check(positions.shape() == batch.at("input_ids").shape() && is_index(positions.dtype()), ErrorKind::input, [&] {
    return str("positions must be integers of shape ", batch.at("input_ids").shape(), ", found ", positions.dtype(),
               " ", positions.shape());
  });
  documents_of(positions);
}

std::unique_ptr<LanguageModel> as_language_model(std::unique_ptr<Model> model) {
  auto* language = dynamic_cast<LanguageModel*>(model.get());
  check(language != nullptr, ErrorKind::input, [&] {
    return "a model of type " + model->spec()->model_type() + " does not model text: expected a language model";
  });
  static_cast<void>(model.release());
  return std::unique_ptr<LanguageModel>(language);
}

}  // namespace braid::models
