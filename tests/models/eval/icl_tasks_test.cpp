#include "braid/models/eval/icl_tasks.h"

#include <boost/test/unit_test.hpp>

#include "tests/models/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(icl_tasks)

namespace {
const models::text::ByteTokenizer kTokenizer;

models::Dcformer model_with(int64_t vocabulary) {
  models::DcformerConfig config = small_config();
  config.vocab_size = vocabulary;
  config.block_size = 400;
  models::resolve(config);
  return models::Dcformer(config, {1, 0});
}

std::vector<models::text::TaskSample> samples() {
  std::vector<models::text::TaskSample> list;
  for (int64_t i = 0; i < 3; ++i) list.push_back(models::text::make_task_sample(models::text::Vocabulary::train, 1, i));
  return list;
}

// Every hidden state is a multiple of ones, so that the logits are the sums of the rows of the output weight.
void set_logits(models::Dcformer& model, const std::vector<double>& rows) {
  for (nn::NamedTensor& p : nn::parameters(model)) {
    Tensor x = p.value.detach();
    if (p.name == "tok_embeddings.weight") x.fill(1);
    if (p.name.starts_with("layers.")) x.fill(0);
    if (p.name != "output.weight") continue;
    for (int64_t v = 0; v < x.dim(0); ++v) x.sliced(0, v, v + 1).fill(rows.at(static_cast<size_t>(v)));
  }
}
}  // namespace

// The last letter of every answer is right where the likeliest byte is that letter; ids without a token are likelier.
BOOST_AUTO_TEST_CASE(ids_that_the_tokenizer_does_not_have_are_no_candidates) {
  const auto right = [](const models::Dcformer& model) {
    int64_t n = 0;
    const models::text::TaskGrader grader = models::grade_tasks(model, kTokenizer, samples());
    for (const auto& [task, score] : grader.tasks()) n += score.first_right;
    return n;
  };
  std::vector<double> rows(300, 0.0);
  const models::text::TaskTokens first = models::text::tokenize_task(kTokenizer, samples()[0]);
  const int32_t letter = first.tokens[static_cast<size_t>(first.answers.back().begin)];
  rows[static_cast<size_t>(letter)] = 1;
  models::Dcformer exact = model_with(258), padded = model_with(300);
  set_logits(exact, rows);
  rows[280] = 2;
  set_logits(padded, rows);
  BOOST_TEST(right(exact) > 0);
  BOOST_TEST(right(padded) == right(exact));
}

BOOST_AUTO_TEST_CASE(logits_that_are_not_finite_are_an_error) {
  models::Dcformer model = model_with(258);
  set_logits(model, std::vector<double>(258, 3e38));
  BRAID_CHECK_FAILS(models::grade_tasks(model, kTokenizer, samples()), ErrorKind::numerical,
                    "the in-context tasks cannot be graded: the model's logits contain NaN or Inf");
}

BOOST_AUTO_TEST_SUITE_END()
