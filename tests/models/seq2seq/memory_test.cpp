// The estimate of activations against what a step of an encoder-decoder keeps between forward and backward.
#include <boost/test/unit_test.hpp>

#include "braid/tensor/memory.h"
#include "tests/models/seq2seq/support.h"

using namespace braid;
using namespace braid::test;
using models::Seq2Seq, models::Seq2SeqConfig;

BOOST_AUTO_TEST_SUITE(seq2seq_memory)

BOOST_AUTO_TEST_CASE(activations_are_what_a_step_keeps) {
  Seq2SeqConfig base = small_seq2seq();
  base.hidden_size = 64, base.num_attention_heads = 4, base.intermediate_size = 256;
  base.encoder_layers = 3, base.decoder_layers = 3, base.max_source_length = 48, base.max_target_length = 32;
  Seq2SeqConfig plain = base, query = base, decoder = base, wide = base;
  plain.use_dcmha = false;
  query.key_side = false;
  decoder.encoder_layers = 1, decoder.max_target_length = 64;
  wide.intermediate_size = 512, wide.rank = 4;
  const std::pair<const char*, Seq2SeqConfig> cases[] = {
      {"DCMHA", base}, {"plain", plain}, {"query side", query}, {"decoder", decoder}, {"wide", wide}};
  for (const auto& [name, config] : cases) {
    const Seq2Seq model(config, {5, 0});
    const int64_t S = config.max_source_length, T = config.max_target_length, V = config.vocab_size;
    const models::Batch batch{{"source_ids", symbol_ids({4, S}, V, 1)},
                              {"input_ids", symbol_ids({4, T}, V, 2)},
                              {"targets", symbol_ids({4, T}, V, 3)}};
    const int64_t before = memory_stats(kCpu).current;
    const Tensor loss = model.loss_sum(batch);
    const auto kept = static_cast<double>(memory_stats(kCpu).current - before);
    const double estimate = model.spec()->training_memory({.batch = 4}).activations;
    BOOST_TEST_CONTEXT(name << ": " << kept << " of " << estimate) {
      BOOST_TEST(kept / estimate < 1.01);
      BOOST_TEST(kept / estimate > 0.99);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
