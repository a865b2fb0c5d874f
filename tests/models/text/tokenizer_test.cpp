#include "braid/models/text/tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using models::text::ByteTokenizer;

BOOST_AUTO_TEST_SUITE(text_tokenizer)

BOOST_AUTO_TEST_CASE(bytes_round_trip_exactly) {
  const ByteTokenizer t;
  std::string all;
  for (int i = 0; i < 512; ++i) all += static_cast<char>(i * 7);
  const auto ids = t.encode(all);
  BOOST_TEST(ids.size() == all.size());
  for (size_t i = 0; i < ids.size(); ++i) BOOST_TEST(ids[i] == static_cast<unsigned char>(all[i]));
  BOOST_TEST((t.decode(ids) == all));
  BOOST_TEST(t.encode("").empty());
}

BOOST_AUTO_TEST_CASE(specials_only_when_asked) {
  const ByteTokenizer t;
  const std::string text = "a<|endoftext|><|pad|>b<|pad";
  BOOST_TEST(t.encode(text).size() == text.size());
  const std::vector<int32_t> expected{'a', 256, 257, 'b', '<', '|', 'p', 'a', 'd'};
  const auto ids = t.encode(text, true);
  BOOST_TEST(ids == expected, boost::test_tools::per_element());
  BOOST_TEST(t.decode(ids) == text);
  BOOST_TEST(t.decode(ids, true) == "ab<|pad");
  BOOST_TEST(t.encode("<|endoftext|>", true) == std::vector<int32_t>{256}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(many_specials_take_linear_time) {  // once proportional to the square: 46 s for this text
  const ByteTokenizer t;
  std::string text;
  for (int i = 0; i < 120000; ++i) text += i % 3 == 0 ? "x<|endoftext|>" : "<|endoftext|>";
  const auto start = std::chrono::steady_clock::now();
  const auto ids = t.encode(text, true);
  BOOST_TEST(ids.size() == 160000u);
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(5)));
  BOOST_TEST((t.decode(ids) == text));
}

BOOST_AUTO_TEST_CASE(ids_outside_the_vocabulary_are_rejected) {
  const ByteTokenizer t;
  BRAID_CHECK_FAILS(t.token_bytes(258), ErrorKind::input, "expected 0 to 257", "found 258");
  BRAID_CHECK_FAILS(t.decode(std::vector<int32_t>{-1}), ErrorKind::input, "found -1");
}

BOOST_AUTO_TEST_CASE(stream_decoder_holds_back_unfinished_characters) {
  const ByteTokenizer t;
  models::text::StreamDecoder d(t);
  std::string shown;
  for (const int32_t id : t.encode("ä€😀x")) {
    const std::string now = d.push(id);
    BOOST_TEST((now.empty() || now == "ä" || now == "€" || now == "😀" || now == "x"));
    shown += now;
  }
  BOOST_TEST(shown == "ä€😀x");
  BOOST_TEST(d.finish().empty());
  BOOST_TEST(d.push(0xE2).empty());
  BOOST_TEST(d.push(256).empty());
  BOOST_TEST(d.push('z') == "\uFFFDz");
  BOOST_TEST(d.push(0xE2).empty());
  BOOST_TEST(d.finish() == "\uFFFD");
  BOOST_TEST(d.finish().empty());
}

BOOST_AUTO_TEST_CASE(saves_and_loads_the_published_format) {
  TempFolder folder;
  const ByteTokenizer t;
  models::text::save_tokenizer(t, folder.path.string());
  const auto j = nlohmann::json::parse(folder.read("tokenizer.json"));
  BOOST_TEST(j["model"]["type"].get<std::string>() == "BPE");
  BOOST_TEST(j["model"]["vocab"]["A"].get<int>() == 65);
  BOOST_TEST(j["model"]["vocab"]["Ġ"].get<int>() == 32);  // the published names of space and newline
  BOOST_TEST(j["model"]["vocab"]["Ċ"].get<int>() == 10);
  BOOST_TEST(j["model"]["vocab"]["ÿ"].get<int>() == 255);
  const auto loaded = models::text::load_tokenizer(folder.path.string());
  BOOST_TEST(loaded->name() == "bytes");
  BOOST_TEST(loaded->fingerprint() == t.fingerprint());
  const auto config = nlohmann::json::parse(folder.read("tokenizer_config.json"));
  BOOST_TEST(config["eos_token"].get<std::string>() == "<|endoftext|>");
}

BOOST_AUTO_TEST_CASE(rejects_other_tokenizers_with_a_sentence) {
  TempFolder folder;
  const std::string dir = folder.path.string();
  BRAID_CHECK_FAILS(models::text::load_tokenizer(dir), ErrorKind::input, "cannot open", "tokenizer.json");
  models::text::save_tokenizer(ByteTokenizer(), dir);
  const auto good = nlohmann::json::parse(folder.read("tokenizer.json"));
  const auto rejects = [&](const char* pointer, nlohmann::json value, const std::string& part) {
    auto bad = good;
    bad[nlohmann::json::json_pointer(pointer)] = std::move(value);
    folder.write("tokenizer.json", bad.dump());
    BRAID_CHECK_FAILS(models::text::load_tokenizer(dir), ErrorKind::input, "unsupported tokenizer in " + dir, part);
  };
  rejects("/model/merges", nlohmann::json::array({"a b"}), "no merges, found 1 of them");
  rejects("/model/type", "WordPiece", "\"WordPiece\"");
  rejects("/model/vocab/A", 66, "\"A\": 65, found 66");
  rejects("/model/vocab/more", 300, "257 entries");
  rejects("/normalizer", {{"type", "NFC"}}, "NFC");
  rejects("/pre_tokenizer/add_prefix_space", true, "add_prefix_space");
  rejects("/added_tokens/0/content", "<eos>", "<eos>");
  rejects("/added_tokens/1", good["added_tokens"][0], "twice");
  rejects("/added_tokens/0", 7, "256 and 257");
  rejects("/model", nullptr, "\"type\": \"BPE\", found null");
  folder.write("tokenizer.json", "[1, 2");
  BRAID_CHECK_FAILS(models::text::load_tokenizer(dir), ErrorKind::input, "tokenizer.json at byte");
}

BOOST_AUTO_TEST_SUITE_END()
