// Checks the results of the recipes in models/data/text/adding_an_input.md and
// models/families/dcformer/adding_a_setting.md (A relative), and the collective of distributed/adding_a_layer.md; the
// sharded layer has its own test.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/cost/size.h"
#include "braid/models/data/prepare/byte_stream.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/registry.h"
#include "tests/distributed/support.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(recipe)

BOOST_AUTO_TEST_CASE(the_new_kind_of_file_is_read) {
  const TempFolder folder;
  const std::string file = folder.write("a.txt.my_hex", "68656c6c6f"), damaged = folder.write("b.my_hex", "686");
  char text[8] = {};
  BOOST_TEST(models::text::open_stream(file)->read(text, 8) == 5);
  BOOST_TEST(std::string(text) == "hello");
  BOOST_TEST(models::text::without_compression(file) == folder / "a.txt");
  BOOST_TEST(throws_with([&] { models::text::open_stream(damaged)->read(text, 8); }, "damaged .my_hex file"));
}

BOOST_AUTO_TEST_CASE(the_new_tokenizer_is_read_and_saved) {
  const TempFolder folder, copy;
  folder.write("tokenizer.json", R"({"model": {"type": "MyLetters", "letters": "abc "}})");
  const auto tokenizer = models::text::load_tokenizer(folder.path.string());
  models::text::save_tokenizer(*tokenizer, copy.path.string());
  const auto again = models::text::load_tokenizer(copy.path.string());
  BOOST_TEST(again->encode("cab") == (std::vector<int32_t>{2, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(again->decode(tokenizer->encode("a cab")) == "a cab");
  BOOST_TEST(again->fingerprint() == tokenizer->fingerprint());
  BOOST_TEST(throws_with([&] { again->encode("cat"); }, "has no letter 't'"));
}

BOOST_AUTO_TEST_CASE(the_relative_is_a_family_that_trains) {
  const models::SettingTexts small{{"dim", "16"}, {"n_layer", "1"}, {"n_head", "2"}};
  const auto spec = models::configure_model("my_parallel-tiny", small),
             plain = models::configure_model("my_plain-tiny", small);
  BOOST_TEST(spec->model_type() == "my_parallel");
  BOOST_TEST(models::read_model_spec(spec->config_json(), "config.json")->config_json() == spec->config_json());
  BOOST_TEST(models::model_size(*plain).parameters < models::model_size(*spec).parameters);
  const auto model = spec->make({1, 0});
  const Tensor ids = from_values({1, 2, 3}, {1, 3}, DType::i64);
  backward(model->loss_sum(models::text_batch(ids, ids)));
  for (const nn::NamedTensor& p : nn::parameters(*model)) BOOST_TEST(bool(grad(p.value)), p.name);
}

BOOST_AUTO_TEST_CASE(the_collective_is_the_adjoint_of_its_backward) {
  for (int ranks : {1, 2, 3}) dist::run_thread_ranks(ranks, check_mappings);
}

BOOST_AUTO_TEST_SUITE_END()
