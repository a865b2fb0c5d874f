#include "braid/models/data/tokenizers/tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(text_tokenizer)

using models::text::ByteTokenizer;

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

BOOST_AUTO_TEST_CASE(nothing_stands_around_bytes) {
  const ByteTokenizer t;
  const std::vector<int32_t> a{'a', 'b'}, b{'c'}, both{'a', 'b', 'c'};
  BOOST_TEST(t.with_template(a) == a, boost::test_tools::per_element());
  BOOST_TEST(t.with_template(a, b) == both, boost::test_tools::per_element());
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

// A file that differs from the byte tokenizer's is one of its own kind, or rejected.
BOOST_AUTO_TEST_CASE(other_files_are_other_tokenizers) {
  TempFolder folder;
  const std::string dir = folder.path.string();
  BRAID_CHECK_FAILS(models::text::load_tokenizer(dir), ErrorKind::input, "cannot open", "tokenizer.json");
  models::text::save_tokenizer(ByteTokenizer(), dir);
  const auto good = nlohmann::json::parse(folder.read("tokenizer.json"));
  const auto changed = [&](const char* pointer, nlohmann::json value) {
    auto other = good;
    other[nlohmann::json::json_pointer(pointer)] = std::move(value);
    folder.write("tokenizer.json", other.dump());
  };
  const auto rejects = [&](const char* pointer, nlohmann::json value, const std::string& part) {
    changed(pointer, std::move(value));
    BRAID_CHECK_FAILS(models::text::load_tokenizer(dir), ErrorKind::input, "tokenizer in " + dir, part);
  };
  rejects("/model/merges", nlohmann::json::array({"A bb"}), "'bb' is not in it");
  rejects("/model/type", "WordTree", "'WordTree'; BPE, Unigram, WordPiece and WordLevel are");
  for (const char* type : {"WordPiece", "WordLevel", "Unigram"})
    rejects("/model/type", type, std::string(type) + " behind ByteLevel");
  rejects("/model/vocab/A", 66, "one token with id 66");
  rejects("/model/vocab/more", 300, "256");
  rejects("/added_tokens/0", 7, "added_tokens[0].id");
  rejects("/model", nullptr, "model: expected an object, found nothing");
  changed("/normalizer", {{"type", "NFC"}});
  BOOST_TEST(models::text::load_tokenizer(dir)->name() == "bpe");
  changed("/added_tokens/0/content", "<eos>");
  const auto other = models::text::load_tokenizer(dir);
  BOOST_TEST(other->encode("a<eos>", true) == (std::vector<int32_t>{97, 256}), boost::test_tools::per_element());
  BOOST_TEST(other->eos_id() == 256);
  BOOST_TEST(other->fingerprint() != ByteTokenizer().fingerprint());
  folder.write("tokenizer.json", "[1, 2");
  BRAID_CHECK_FAILS(models::text::load_tokenizer(dir), ErrorKind::input, "tokenizer.json at byte");
}

BOOST_AUTO_TEST_SUITE_END()
