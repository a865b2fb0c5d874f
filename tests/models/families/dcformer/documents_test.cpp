// Packed sequences: loss and gradients are those of the documents run separately, in f64.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/training/trainer.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(documents)

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;
constexpr int64_t kLength = 24;

// A small model in f64 whose dynamic weights matter; windows of 5 tokens in every other layer.
models::Dcformer make_model(const std::string& preset, const Keys& keys = {}) {
  Keys all = {{"dim", "16"},        {"n_head", "4"},      {"n_layer", "2"},     {"intermediate_size", "24"},
              {"vocab_size", "30"}, {"window_size", "5"}, {"block_size", "32"}, {"initializer_std", "0.3"}};
  all.insert(all.end(), keys.begin(), keys.end());
  models::Dcformer model(models::configure(preset, all), {5, 0});
  for (nn::NamedTensor& p : nn::parameters(model)) {
    if (p.name.find("qkw") != std::string::npos || p.name.find(".dd") != std::string::npos)
      p.value.copy_(normal_tensor(p.value.shape(), 0.3, child({9, 9}, p.name.c_str())));
  }
  model.to(DType::f64);
  for (nn::NamedTensor& p : nn::parameters(model)) require_grad(p.value);
  return model;
}

const std::vector<std::vector<int64_t>> kDocuments = {{1, 12, 3, 8}, {20, 4}};  // lengths in each sample

models::Batch batch(bool packed) {
  std::vector<int32_t> ids, targets, positions;
  for (size_t b = 0; b < kDocuments.size(); ++b) {
    for (const int64_t length : kDocuments[b]) {
      for (int64_t i = 0; i < length; ++i) {
        const auto at = static_cast<int32_t>(ids.size());
        ids.push_back((at * 7 + at * at) % 30);
        targets.push_back(at % 5 == 0 ? -100 : (at * 11 + 3) % 30);
        positions.push_back(static_cast<int32_t>(i));
      }
    }
  }
  const Shape shape = {2, kLength};
  return models::text_batch(from_vector(ids, shape), from_vector(targets, shape),
                            packed ? from_vector(positions, shape) : Tensor());
}

struct Results {
  double loss = 0;
  std::vector<std::vector<double>> gradients;
};

Results results_of(models::Dcformer& model, const std::vector<models::Batch>& batches) {
  Results results;
  nn::zero_grad(model);
  for (const models::Batch& b : batches) {
    model.check_batch(b);
    const Tensor loss = static_cast<models::Model&>(model).loss_sum(b);
    results.loss += loss.item();
    backward(loss);
  }
  for (const nn::NamedTensor& p : nn::parameters(model)) results.gradients.push_back(grad(p.value).to_vector<double>());
  return results;
}

std::vector<models::Batch> one_by_one() {
  std::vector<models::Batch> all;
  const models::Batch together = batch(false);
  for (size_t b = 0; b < kDocuments.size(); ++b) {
    int64_t begin = 0;
    for (const int64_t length : kDocuments[b]) {
      const auto part = [&](const char* name) {
        const auto sample = static_cast<int64_t>(b);
        return together.at(name).sliced(0, sample, sample + 1).sliced(1, begin, begin + length).clone();
      };
      all.push_back(models::text_batch(part("input_ids"), part("targets")));
      begin += length;
    }
  }
  return all;
}

void expect_equal(const Results& got, const Results& expected, const std::string& what) {
  BOOST_TEST_CONTEXT(what) {
    BOOST_TEST(std::abs(got.loss - expected.loss) <= 1e-12 * std::abs(expected.loss));
    for (size_t i = 0; i < got.gradients.size(); ++i)
      BOOST_TEST(is_close(got.gradients[i], expected.gradients[i], 1e-12, 1e-3));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_packed_sequence_equals_its_documents_run_separately) {
  const std::pair<const char*, Keys> models[] = {
      {"dcformer-tiny", {}},
      {"dcformer-tiny", {{"profile.num_groups", "2"}, {"window_type", "LG"}}},
      {"dcpythia-tiny", {{"rotary_pct", "0.5"}}},
      {"transformer-tiny", {}},
  };
  for (const auto& [preset, keys] : models) {
    models::Dcformer model = make_model(preset, keys);
    const Results expected = results_of(model, one_by_one()), joined = results_of(model, {batch(false)});
    BOOST_TEST(std::abs(joined.loss - expected.loss) > 1e-3);
    expect_equal(results_of(model, {batch(true)}), expected, preset);
    model.set_recompute(true);
    expect_equal(results_of(model, {batch(true)}), expected, preset + std::string(", recomputed"));
  }
}

BOOST_AUTO_TEST_CASE(an_observer_gets_the_results_of_the_documents) {
  models::Dcformer model = make_model("dcformer-tiny");
  nn::freeze(model);
  std::vector<double> packed, separate;
  const auto into = [](std::vector<double>& all) {
    return nn::ActivationObserver{[&all](const std::string& name, const Tensor& value) {
                                    if (name != "final_norm") return;
                                    const std::vector<double> values = value.to_vector<double>();
                                    all.insert(all.end(), values.begin(), values.end());
                                  },
                                  {}};
  };
  model.observe(batch(true), into(packed));
  for (const models::Batch& b : one_by_one()) model.observe(b, into(separate));
  BOOST_TEST(is_close(packed, separate, 1e-12, 1e-3));
}

BOOST_AUTO_TEST_CASE(bad_positions_are_errors) {
  const models::Dcformer model = make_model("dcformer-tiny");
  const Tensor ids = batch(false).at("input_ids"), targets = batch(false).at("targets");
  const auto with = [&](const Tensor& positions) {
    return models::Batch{{"input_ids", ids}, {"targets", targets}, {models::kPositions, positions}};
  };
  BRAID_CHECK_FAILS(model.check_batch(with(full(ids.shape(), 3, DType::i32))), ErrorKind::input,
                    "bad positions of documents at sample 0, token 0");
  BRAID_CHECK_FAILS(model.check_batch(with(zeros({2, 3}, DType::i32))), ErrorKind::input,
                    "positions must be integers of shape (2, 24), found i32 (2, 3)");
  BRAID_CHECK_FAILS(models::text_batch(ids, targets, zeros({2, 3}, DType::i32)), ErrorKind::misuse,
                    "positions (2, 3) do not match");
  const models::Batch slice = batch(true).slice(1, 2);
  BOOST_TEST(slice.at(models::kPositions).to_vector<int64_t>()[20] == 0);
}

BOOST_AUTO_TEST_SUITE_END()
