// Preferences: lines of JSON become pairs of sequences, and a folder of them becomes batches.
#include <boost/test/unit_test.hpp>
#include <set>

#include "braid/models/data/prepare/samples.h"
#include "braid/models/data/text/preference_data.h"
#include "tests/models/data/prepare/support.h"
#include "tests/support/throws.h"

using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(preference_folders)

namespace {

const SampleFormat kPlain{.preferences = true};
const SampleFormat kChat{.chat = ChatTemplate::parse("simple"), .preferences = true};

Sample made(const std::string& line, const SampleFormat& format = kPlain) {
  return make_sample(line, "in.jsonl at line 3", format, ByteTokenizer());
}

// The two sequences of a pair: text, and the text that is counted in [brackets].
std::vector<std::string> shown(const Sample& pair) {
  std::vector<std::string> both(2);
  bool open = false;
  for (size_t i = 0; i < pair.tokens.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    std::string& text = both[at >= pair.second ? 1 : 0];
    const bool begins = at == pair.second && open;
    if (begins) both[0] += "]", open = false;
    if (pair.counted[i] != open) text += open ? "]" : "[", open = !open;
    text += pair.tokens[i] == 256 ? "|" : std::string(1, static_cast<char>(pair.tokens[i]));
  }
  if (open) both[1] += "]";
  return both;
}

std::string line_of(int i) {
  const auto n = static_cast<size_t>(i);
  return "{\"prompt\": \"" + std::string(n % 5, 'p') + std::to_string(i) + "?\", \"chosen\": \"" +
         std::string(1 + n % 7, 'c') + "\", \"rejected\": \"" + std::string(1 + n % 3, 'r') + "\"}\n";
}
std::string lines(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += line_of(i);
  return text;
}

PrepareOptions options(const TempFolder& folder, const std::string& out, double val_fraction = 0) {
  return {.inputs = {folder / "in.jsonl"}, .output = folder / out, .val_fraction = val_fraction};
}

// The texts of both sequences of a pair without padding, with their targets in their place: "p1?c|" and "...c|".
std::pair<std::string, std::string> texts(const Dataset& data, int64_t sequence) {
  const Sequence s = data.sequence(sequence);
  std::string ids, targets;
  for (size_t t = 0; t < s.ids.size(); ++t) {
    if (s.ids[t] < 256) ids += static_cast<char>(s.ids[t]);
    if (s.ids[t] < 257) targets += s.targets[t] < 0 ? '.' : s.targets[t] == 256 ? '|' : static_cast<char>(s.targets[t]);
  }
  return {ids, targets};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_pair_is_the_prompt_with_each_answer) {
  using Texts = std::vector<std::string>;
  BOOST_TEST(
      shown(made(R"({"prompt": "2+2=", "chosen": "4", "rejected": "five"})")) == Texts({"2+2=[4|]", "2+2=[five|]"}),
      boost::test_tools::per_element());
  // Strings and lists of messages mean the same, in any mixture.
  const std::string prompt[] = {R"("Hi")", R"([{"role": "user", "content": "Hi"}])"},
                    chosen[] = {R"("Yes")", R"([{"role": "assistant", "content": "Yes"}])"};
  for (const std::string& p : prompt)
    for (const std::string& c : chosen)
      BOOST_TEST(shown(made("{\"prompt\": " + p + ", \"chosen\": " + c + ", \"rejected\": \"No\"}", kChat)) ==
                     Texts({"user: Hi\nassistant: [Yes\n|]", "user: Hi\nassistant: [No\n|]"}),
                 boost::test_tools::per_element());
  // Earlier answers belong to the prompt.
  const std::string talk =
      R"({"prompt": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"},
          {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}], "chosen": "d", "rejected": "e"})";
  const std::string before = "system: S\nuser: a\nassistant: b\nuser: c\nassistant: ";
  BOOST_TEST(shown(made(talk, kChat)) == Texts({before + "[d\n|]", before + "[e\n|]"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bad_lines_name_file_line_and_field) {
  const auto fails = [](const std::string& line, const std::string& words, const SampleFormat& format = kPlain) {
    BRAID_CHECK_FAILS(made(line, format), ErrorKind::input, "in.jsonl at line 3", words);
  };
  fails("[1]", "expected a JSON object, found array");
  fails(R"({"prompt": "a", "chosen": "b"})", "in the field \"rejected\", found none");
  fails(R"({"prompt": "a", "rejected": "b"})", "in the field \"chosen\", found none");
  fails(R"({"chosen": "a", "rejected": "b"})", "in the field \"prompt\", found none");
  fails(R"({"prompt": 1, "chosen": "b", "rejected": "c"})", "in the field \"prompt\", found number");
  fails(R"({"prompt": "a", "chosen": [{"role": "assistant", "content": "b"}], "rejected": "c"})",
        "expected text (a list of messages needs a chat template, `chat`) in the field \"chosen\", found array");
  fails(R"({"prompt": "a", "chosen": {}, "rejected": "c"})",
        "expected text or a list of messages in the field \"chosen\", found object", kChat);
  fails(R"({"prompt": "a", "chosen": "b", "rejected": []})", "expected at least one message, found none", kChat);
  fails(R"({"prompt": "a", "chosen": [{"role": "user", "content": "b"}], "rejected": "c"})",
        "expected a last message of the assistant in the field \"chosen\", found one of role 'user'", kChat);
  fails(R"({"prompt": [{"role": "user", "content": 4}], "chosen": "b", "rejected": "c"})",
        "in the field \"content\" of a message, found number", kChat);
}

BOOST_AUTO_TEST_CASE(pairs_stay_together_in_every_split_and_shard) {
  TempFolder folder;
  folder.write("in.jsonl", lines(100));
  PrepareOptions o = options(folder, "out", 0.2);
  o.shard_tokens = 60;
  const SampleSummary summary = prepare_samples(o, kPlain);
  const Manifest& m = summary.prepared.manifest;
  BOOST_TEST(m.train.shards.size() > 10u);
  BOOST_TEST(m.train.documents + m.val.documents == 200);
  BOOST_TEST(holds_preferences(read_manifest(o.output)));
  std::multiset<std::string> found, expected;
  for (const Split split : {Split::train, Split::val}) {
    const PreferenceData data(o.output, split, 24, false);
    BOOST_TEST(data.left_out() == 0);
    BOOST_TEST(data.size() > 5);
    for (int64_t pair = 0; pair < data.size(); ++pair) {
      const models::Batch batch = data.batch({pair});
      BOOST_TEST(batch.at("input_ids").shape() == Shape({2, 24}));
      const auto [chosen, chosen_targets] = texts(data.sequences(), data.first_sequence(pair));
      const auto [rejected, rejected_targets] = texts(data.sequences(), data.first_sequence(pair) + 1);
      found.insert(chosen + " " + rejected);
      // The target of an input is the token that follows it, from the last one of the prompt on.
      const size_t prompt = chosen.find('?');
      BOOST_TEST(chosen_targets == std::string(prompt, '.') + chosen.substr(prompt + 1) + "|");
      BOOST_TEST(rejected_targets == std::string(prompt, '.') + rejected.substr(prompt + 1) + "|");
      const std::vector<int32_t> ids = batch.at("targets").to_vector<int32_t>();
      BOOST_TEST((ids[prompt] == 'c' && ids[24 + prompt] == 'r'));
    }
  }
  for (int i = 0; i < 100; ++i) {
    const auto n = static_cast<size_t>(i);
    const std::string prompt = std::string(n % 5, 'p') + std::to_string(i) + "?";
    expected.insert(prompt + std::string(1 + n % 7, 'c') + " " + prompt + std::string(1 + n % 3, 'r'));
  }
  BOOST_TEST((found == expected));
  BOOST_TEST(prepare_samples(o, kPlain).prepared.unchanged);
  BRAID_CHECK_FAILS(PreferenceData(o.output, Split::train, 2, false), ErrorKind::input,
                    "no sample of at most 3 tokens");
}

BOOST_AUTO_TEST_CASE(long_pairs_and_lines_without_an_answer_are_counted) {
  TempFolder folder;
  folder.write("in.jsonl", R"({"prompt": "ab", "chosen": "c", "rejected": "d"}
{"prompt": "ab", "chosen": "cccccccccc", "rejected": "d"}
{"prompt": "ab", "chosen": "c", "rejected": "dddddddddd"}
{"prompt": "abababababab", "chosen": "c", "rejected": "d"}
)");
  prepare_samples(options(folder, "out"), kPlain);
  const PreferenceData data(folder / "out", Split::train, 6, false), cut(folder / "out", Split::train, 6, true);
  BOOST_TEST(data.size() == 1);
  BOOST_TEST(data.left_out() == 3);
  BOOST_TEST(cut.size() == 3);  // the last one has no answer within its sequences
  BOOST_TEST(cut.left_out() == 1);
  BOOST_TEST(texts(cut.sequences(), cut.first_sequence(1)).second == ".ccccc");
  folder.write("in.jsonl", R"({"prompt": "ab", "chosen": "c", "rejected": "dddddddddd"})");
  prepare_samples(options(folder, "half"), kPlain);
  BRAID_CHECK_FAILS(PreferenceData(folder / "half", Split::train, 6, false), ErrorKind::input,
                    "has no pair of at most 7 tokens a sequence: found 1 pairs, the longest sequence of 13 tokens");
  folder.write("in.jsonl", R"({"prompt": "ab", "answer": "c"})");
  prepare_samples(options(folder, "one"), {});
  BRAID_CHECK_FAILS(PreferenceData(folder / "one", Split::train, 6, false), ErrorKind::input, "holds no preferences");
  BRAID_CHECK_FAILS(prepare_samples(options(folder, "out"), {}), ErrorKind::setting, "holds other data");
}

BOOST_AUTO_TEST_SUITE_END()
