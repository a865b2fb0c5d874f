// The estimate of activations against what a step of an encoder-decoder keeps between forward and backward.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/models/families/seq2seq/support.h"
#include "tests/models/kept.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(seq2seq_memory)

using models::Seq2Seq, models::Seq2SeqConfig;

namespace {

Kept kept_by_step(Seq2SeqConfig config, int64_t encoder_layers, int64_t decoder_layers, DType dtype) {
  config.encoder_layers = encoder_layers, config.decoder_layers = decoder_layers;
  Seq2Seq model(config, {5, 0});
  model.to(dtype);
  const int64_t S = config.max_source_length, T = config.max_target_length, V = config.vocab_size;
  const models::Batch batch{{"source_ids", symbol_ids({4, S}, V, 1)},
                            {"input_ids", symbol_ids({4, T}, V, 2)},
                            {"targets", symbol_ids({4, T}, V, 3)}};
  return test::kept_by_step(model, batch, {.batch = 4, .bytes_per_element = size_of(dtype)});
}

}  // namespace

BOOST_AUTO_TEST_CASE(activations_are_what_a_step_keeps) {
  Seq2SeqConfig base = small_seq2seq();
  base.hidden_size = 64, base.num_attention_heads = 4, base.intermediate_size = 256;
  base.max_source_length = 48, base.max_target_length = 32;
  Seq2SeqConfig plain = base, query = base, longer = base, wide = base;
  plain.use_dcmha = false;
  query.key_side = false;
  longer.max_target_length = 64;
  wide.intermediate_size = 512, wide.rank = 4;
  const std::pair<const char*, Seq2SeqConfig> cases[] = {
      {"DCMHA", base}, {"plain", plain}, {"query side", query}, {"long target", longer}, {"wide", wide}};
  for (const auto& [name, config] : cases) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Kept two = kept_by_step(config, 2, 2, dtype), encoder = kept_by_step(config, 3, 2, dtype) - two,
                 decoder = kept_by_step(config, 2, 3, dtype) - two;
      BOOST_TEST_CONTEXT(name << " " << str(dtype) << ": " << two.measured << " of " << two.estimate
                              << ", an encoder block " << encoder.measured << " of " << encoder.estimate
                              << ", a decoder block " << decoder.measured << " of " << decoder.estimate) {
        BOOST_TEST(std::fabs(encoder.ratio() - 1) < 1e-3);
        BOOST_TEST(std::fabs(decoder.ratio() - 1) < 1e-3);
        BOOST_TEST(std::fabs(two.ratio() - 1) < 5e-3);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
