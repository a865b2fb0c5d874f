// The two forms of an inspection: the values of both are those of the result.
#include "braid/models/inspect/inspection_json.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(inspection_json)

using nlohmann::json;

namespace {

Inspection some_inspection(const std::vector<int32_t>& tokens, bool scaled) {
  const Dcformer model(small_config(), {1, 0});
  InspectionRequest request{.tokens = tokens, .layer = 1, .pair = std::pair<int64_t, int64_t>{2, 1}, .candidates = 2};
  nn::CompositionScale factors;
  factors.pre.query = 0.5;
  if (scaled) request.scales = {{1, factors}};
  return inspect(model, request);
}

}  // namespace

BOOST_AUTO_TEST_CASE(as_json) {
  const text::ByteTokenizer tokenizer;
  const Inspection inspection = some_inspection({'h', 0xc3, 257}, true);
  const json root = json::parse(models::inspection_json(inspection, &tokenizer));
  BOOST_TEST(root["object"] == "inspection");
  BOOST_TEST(root["layers"] == 2);
  BOOST_TEST(root["layer"] == 1);
  BOOST_TEST(root["heads"] == 4);
  BOOST_TEST(root["rank"] == 2);
  BOOST_TEST(root["scaled"] == true);
  const json& positions = root["positions"];
  BOOST_REQUIRE(positions.size() == 3u);
  BOOST_TEST(positions[0]["text"] == "h");
  BOOST_TEST(positions[1]["text"] == "\uFFFD");  // half a character
  BOOST_TEST(positions[2]["text"] == "<|pad|>");
  BOOST_TEST(positions[2]["plain"]["next"].is_null());
  for (size_t t = 0; t < 3; ++t) {
    const NextToken& next = inspection.next[t];
    BOOST_TEST(positions[t]["plain"]["entropy"] == next.plain.entropy);
    BOOST_TEST(positions[t]["scaled"]["entropy"] == next.scaled.entropy);
    BOOST_TEST(positions[t]["kl"] == next.kl);
    BOOST_REQUIRE(positions[t]["candidates"].size() == next.candidates.size());
    BOOST_TEST(positions[t]["candidates"][1]["id"] == next.candidates[1].token);
    BOOST_TEST(positions[t]["candidates"][1]["plain"] == next.candidates[1].plain);
    BOOST_TEST(positions[t]["candidates"][1]["scaled"] == next.candidates[1].scaled);
  }
  BOOST_TEST(root["tensors"].size() == inspection.tensors.size());
  for (const NamedTensor& t : inspection.tensors) {
    const json& written = root["tensors"][t.name];
    BOOST_TEST((written["shape"] == std::vector<int64_t>(t.value.shape().begin(), t.value.shape().end())));
    const std::vector<float> values = t.value.to_vector<float>();
    BOOST_REQUIRE(written["data"].size() == values.size());
    for (size_t e = 0; e < values.size(); ++e) {
      if (std::isinf(values[e])) BOOST_TEST(written["data"][e].is_null());
      if (!std::isinf(values[e])) BOOST_TEST(written["data"][e] == values[e]);
    }
  }
  const json plain = json::parse(models::inspection_json(some_inspection({'h', 'i', '!'}, false), nullptr));
  BOOST_TEST(!plain["positions"][0].contains("text"));
  BOOST_TEST(!plain["positions"][0].contains("kl"));
  BOOST_TEST(!plain["positions"][0]["candidates"][0].contains("scaled"));
}

BOOST_AUTO_TEST_CASE(as_safetensors) {
  const Inspection inspection = some_inspection({'h', 'e', 'l', 'l', 'o'}, false);
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::string bytes = inspection_safetensors(inspection, nullptr, dtype);
    const io::SafetensorsFile file(std::as_bytes(std::span(bytes)), "inspection");
    BOOST_TEST(file.tensors().size() == inspection.tensors.size());
    for (const NamedTensor& t : inspection.tensors)
      BOOST_TEST(is_close(file.load(t.name), t.value.to(dtype), 0), t.name);
    json whole = json::parse(models::inspection_json(inspection, nullptr));
    whole.erase("tensors");
    BOOST_TEST((json::parse(file.metadata().at("inspection")) == whole));
  }
}

BOOST_AUTO_TEST_SUITE_END()
