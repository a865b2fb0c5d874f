// An encoder-decoder small enough for loops over every head, query and key, and a batch of it.
#pragma once
#include "braid/models/families/seq2seq/model.h"
#include "tests/models/randomise.h"

namespace braid::test {

inline models::Seq2SeqConfig small_seq2seq(bool compose = true) {
  models::Seq2SeqConfig c;
  c.hidden_size = 8;
  c.encoder_layers = 1;
  c.decoder_layers = 2;
  c.num_attention_heads = 2;
  c.intermediate_size = 6;
  c.vocab_size = 9;
  c.max_source_length = 5;
  c.max_target_length = 4;
  c.use_dcmha = compose;
  return c;
}

inline models::Seq2Seq random_seq2seq(const models::Seq2SeqConfig& config, double deviation = 0.4,
                                      RandomKey key = {5, 0}) {
  models::Seq2Seq model(config, key);
  model.to(DType::f64);
  randomise(model, key, deviation);
  return model;
}

inline Tensor symbol_ids(const Shape& shape, int64_t symbols, int64_t salt) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < numel(shape); ++i) values.push_back((i * i * 5 + i * 3 + salt) % symbols);
  return from_vector(values, shape);
}

inline models::Batch seq2seq_batch(const models::Seq2SeqConfig& c, int64_t B = 2) {
  Tensor targets = symbol_ids({B, 4}, c.vocab_size, 4).clone();
  targets.sliced(0, 0, 1).sliced(1, 3, 4).fill(-1);
  return {{"source_ids", symbol_ids({B, 5}, c.vocab_size, 1)},
          {"input_ids", symbol_ids({B, 4}, c.vocab_size, 2)},
          {"targets", targets}};
}

inline Tensor logits_of(const models::Seq2Seq& model, const models::Batch& b) {
  return model.logits(model.decode(b.at("input_ids"), model.encode(b.at("source_ids"))));
}

}  // namespace braid::test
