// Ends of files that validate, where no document is drawn.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "tests/models/data/prepare/support.h"

BOOST_AUTO_TEST_SUITE(text_reading)

namespace {

// With the seed 3 no document of these is drawn at a fraction up to 0.3.
constexpr const char* kWords =
    "{\"text\": \"aaaaaaaaaaaaaaa\"}\n{\"text\": \"bbbbb\"}\n{\"text\": \"ccccc\"}\n{\"text\": \"ddddd\"}\n";
constexpr const char* kLines =
    "{\"text\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\nbbbb\\n\"}\n{\"text\": \"cc\\n\"}\n{\"text\": \"dddd\\n\"}\n";

struct Cut {
  double fraction;
  std::string train, val;
};

// Checks the splits, and that every document of them is counted.
void cuts(const char* file, const std::vector<Cut>& rows, const std::vector<int64_t>& shards) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("in.jsonl", file)}, .output = folder / "out", .replace = true, .seed = 3};
  for (const Cut& row : rows)
    for (const int64_t shard : shards) {
      o.val_fraction = row.fraction, o.shard_tokens = shard;
      const auto m = models::text::prepare(o).manifest;
      const std::string train = text_of(o.output, Split::train), val = text_of(o.output, Split::val);
      BOOST_TEST_CONTEXT("fraction " << row.fraction << ", shards of " << shard) {
        BOOST_TEST(train == row.train);
        BOOST_TEST(val == row.val);
        BOOST_TEST(m.train.tokens == std::ssize(train));
        BOOST_TEST(m.val.tokens == std::ssize(val));
        BOOST_TEST(m.train.documents == std::count(train.begin(), train.end(), '|'));
        BOOST_TEST(m.val.documents == std::count(val.begin(), val.end(), '|'));
      }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_end_counts_its_documents_and_begins_behind_an_end) {
  cuts(kWords,
       {{0.3, "aaaaaaaaaaaaaaa|bbbbb|cc|", "ccc|ddddd|"},
        {0.2, "aaaaaaaaaaaaaaa|bbbbb|ccccc|", "ddddd|"},   // cut before the end of a document
        {0.18, "aaaaaaaaaaaaaaa|bbbbb|ccccc|", "ddddd|"},  // and behind it
        {0.01, "aaaaaaaaaaaaaaa|bbbbb|ccccc|dddd|", "d|"}},
       {1, 2, 7, 1 << 20});
}

// Also where the line that ends near the cut is the last one of a document.
BOOST_AUTO_TEST_CASE(an_end_begins_with_a_line_of_a_document) {
  const std::string first = std::string(30, 'a') + "\nbbbb\n|";
  cuts(kLines, {{0.3, first, "cc\n|dddd\n|"}, {0.2, first + "cc\n|", "dddd\n|"}, {0.04, first + "cc\n|dddd|", "\n|"}},
       {47, 1 << 20});
}

BOOST_AUTO_TEST_CASE(ends_of_several_files_count_their_documents) {
  TempFolder folder;
  PrepareOptions o;
  o.inputs = {folder.write("a.jsonl", kWords), folder.write("b.jsonl", kLines), folder.write("c.txt", "x")};
  o.output = folder / "out";
  o.replace = true;
  o.seed = 3;
  o.val_fraction = 0.2;
  for (const int64_t shard : {5, 1 << 20}) {
    o.shard_tokens = shard;
    const auto m = models::text::prepare(o).manifest;
    BOOST_TEST(m.train.documents == 6);
    BOOST_TEST(m.val.documents == 2);
    const std::string train = text_of(o.output, Split::train), val = text_of(o.output, Split::val);
    BOOST_TEST(std::count(train.begin(), train.end(), '|') == 6);
    BOOST_TEST(val.starts_with("ddddd|"));
    BOOST_TEST(val.ends_with("\n|"));
    BOOST_TEST(train.ends_with("|x|"));  // has nothing for validation
    BOOST_TEST((train + val).find("||") == std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
