#include "braid/models/data/text/dataset.h"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <set>

#include "braid/models/data/text/batches.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(text_dataset)

using models::text::Dataset;
using models::text::Split;

namespace {

// A data folder whose train split holds `tokens` in shards of these sizes.
void make(const TempFolder& folder, const std::vector<int32_t>& tokens, const std::vector<size_t>& sizes) {
  const models::text::ByteTokenizer t;
  models::text::Manifest m{
      .tokenizer = t.name(), .tokenizer_fingerprint = t.fingerprint(), .vocab_size = t.vocab_size()};
  size_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = "train-" + std::to_string(i) + ".tok";
    models::text::ShardWriter w(folder / name, t.vocab_size(), t.fingerprint());
    w.write(std::span(tokens).subspan(start, sizes[i]));
    start += sizes[i];
    const auto h = w.commit();
    m.train.shards.push_back({name, h.tokens, h.checksum});
    m.train.tokens += h.tokens;
  }
  m.train.documents = 1;
  models::text::save_tokenizer(t, folder.path.string());
  models::text::write_manifest(folder.path.string(), m);
}

std::vector<int32_t> count_up(size_t n) {
  std::vector<int32_t> tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>(i % 257);
  return tokens;
}

void replace(const TempFolder& folder, const std::string& name, const std::string& from, const std::string& to) {
  std::string bytes = folder.read(name);
  const size_t at = bytes.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  folder.write(name, bytes.replace(at, from.size(), to));
}

}  // namespace

BOOST_AUTO_TEST_CASE(windows_tile_the_tokens_across_shards) {
  TempFolder folder;
  const auto tokens = count_up(100);
  make(folder, tokens, {1, 40, 3, 56});
  for (const int64_t T : {1, 2, 7, 9, 11, 33, 98, 99}) {
    const Dataset d(folder.path.string(), Split::train, T);
    BOOST_TEST(d.tokens() == 100);
    BOOST_TEST(d.size() == 99 / T);
    for (int64_t i = 0; i < d.size(); ++i) {
      const auto w = d.window(i);
      BOOST_REQUIRE_EQUAL(w.size(), static_cast<size_t>(T + 1));
      for (int64_t k = 0; k <= T; ++k)
        BOOST_REQUIRE_EQUAL(w[static_cast<size_t>(k)], tokens[static_cast<size_t>(i * T + k)]);
    }
    BRAID_CHECK_FAILS(d.window(d.size()), ErrorKind::misuse, "window " + std::to_string(d.size()));
    BRAID_CHECK_FAILS(d.window(-1), ErrorKind::misuse, "window -1");
  }
}

// A data set of more shards than the process may open files; and one that changes while it is read.
BOOST_AUTO_TEST_CASE(few_of_many_shards_are_open_at_a_time) {
  TempFolder folder;
  const auto tokens = count_up(120);
  make(folder, tokens, std::vector<size_t>(120, 1));
  rlimit old{};
  ::getrlimit(RLIMIT_NOFILE, &old);
  rlimit now = old;
  now.rlim_cur = 100;
  ::setrlimit(RLIMIT_NOFILE, &now);
  {
    const Dataset d(folder.path.string(), Split::train, 7);
    for (int64_t i = d.size(); i-- > 0;)
      BOOST_TEST(d.window(i) == std::vector<int32_t>(tokens.begin() + i * 7, tokens.begin() + i * 7 + 8),
                 boost::test_tools::per_element());
    const models::text::ByteTokenizer t;
    models::text::ShardWriter other(folder / "train-100.tok", t.vocab_size(), t.fingerprint());
    other.write(std::vector<int32_t>{9});
    other.commit();
    std::vector<int32_t> one(1);
    BRAID_CHECK_FAILS(d.read(100, one), ErrorKind::input, "train-100.tok", "was replaced while it was in use");
  }
  ::setrlimit(RLIMIT_NOFILE, &old);
}

BOOST_AUTO_TEST_CASE(separate_documents_count_from_0) {
  TempFolder folder;
  const int32_t e = models::text::ByteTokenizer().eos_id();
  make(folder, {1, 2, e, 3, 4, 5, e, e, 6, 7}, {10});
  const Dataset joined(folder.path.string(), Split::train, 3),
      separate(folder.path.string(), Split::train, 3, {.documents = models::text::DocumentAttention::separate});
  const std::vector<int32_t> expected[] = {{0, 1, 2}, {0, 1, 2}, {0, 0, 0}};
  for (int64_t i = 0; i < 3; ++i) {
    const models::text::Sequence a = joined.sequence(i), b = separate.sequence(i);
    BOOST_TEST((a.ids == b.ids && a.targets == b.targets && a.positions.empty()));
    BOOST_TEST(b.positions == expected[i], boost::test_tools::per_element());
    const std::vector<int32_t> window = joined.window(i);
    BOOST_TEST(std::vector<int32_t>(window.begin() + 1, window.end()) == a.targets, boost::test_tools::per_element());
  }
  const models::Batch batch = models::text::read_batch(separate, {2, 0});
  BOOST_TEST(batch.at("positions").to_vector<int64_t>() == std::vector<int64_t>({0, 0, 0, 0, 1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(!models::text::read_batch(joined, {0}).has("positions"));
}

BOOST_AUTO_TEST_CASE(too_small_a_split_is_a_sentence) {
  TempFolder folder;
  make(folder, count_up(100), {100});
  BRAID_CHECK_FAILS(Dataset(folder.path.string(), Split::train, 100), ErrorKind::input, "train split", "at least 101",
                    "found 100");
  BRAID_CHECK_FAILS(Dataset(folder.path.string(), Split::val, 10), ErrorKind::input, "val split", "found 0");
  BRAID_CHECK_FAILS(Dataset(folder.path.string(), Split::train, 0), ErrorKind::setting, "sequence length");
}

BOOST_AUTO_TEST_CASE(mixed_up_or_edited_folders_are_noticed) {
  TempFolder folder, other;
  const std::string dir = folder.path.string();
  make(folder, count_up(100), {50, 50});
  make(other, count_up(50), {50});
  const auto fails = [&](const std::string& a, const std::string& b) {
    BRAID_CHECK_FAILS(Dataset(dir, Split::train, 10), ErrorKind::input, a, b);
    make(folder, count_up(100), {50, 50});
  };
  folder.write("train-1.tok", other.read("train-0.tok"));  // same size, other content
  fails("not the one that dataset.json lists", "train-1.tok");
  std::filesystem::remove(folder / "train-1.tok");
  fails("cannot open", "train-1.tok");
  replace(folder, "dataset.json", "\"documents\": 1", "\"documents\": 2");
  fails("bad field \"fingerprint\"", "dataset.json");
  replace(folder, "dataset.json", "\"tokens\": 100", "\"tokens\": 101");
  fails("train.tokens", "expected 100");
  replace(folder, "dataset.json", "train-1.tok", "../x.tok");
  fails("bad field \"file\"", "without folder");
  replace(folder, "dataset.json", "\"version\": 1", "\"version\": 9");
  fails("bad field \"version\"", "expected 1");
  replace(folder, "dataset.json", "\"vocab_size\": 258", "\"vocab_size\": -1");
  fails("bad field \"vocab_size\"", "found -1");
  replace(folder, "dataset.json", "\"vocab_size\": 258", "\"vocab_size\": 18446744073709551615");
  fails("bad field \"vocab_size\"", "found 18446744073709551615");
  replace(folder, "dataset.json", "\"seed\": 0", "\"seed\": \"x\"");
  fails("bad field \"seed\"", "");
  std::filesystem::remove(folder / "tokenizer.json");
  fails("cannot open", "tokenizer.json");
  std::filesystem::remove(folder / "dataset.json");
  fails("cannot open", "dataset.json");
}

BOOST_AUTO_TEST_CASE(another_tokenizer_is_noticed) {
  TempFolder folder;
  const std::string dir = folder.path.string();
  make(folder, count_up(100), {100});
  auto m = models::text::read_manifest(dir);
  m.tokenizer_fingerprint ^= 1;
  models::text::write_manifest(dir, m);
  BRAID_CHECK_FAILS(Dataset(dir, Split::train, 10), ErrorKind::input, "the tokenizer is not the one");
}

BOOST_AUTO_TEST_CASE(the_manifest_survives_a_file_and_its_fingerprint_covers_everything) {
  TempFolder folder;
  models::text::Manifest m{.tokenizer = "t",
                           .tokenizer_fingerprint = ~uint64_t{0},
                           .vocab_size = 50304,
                           .seed = ~uint64_t{0},
                           .val_fraction = 0.1,
                           .train = {7, 3, {{"train-0.tok", 7, 0xffffffffu}}},
                           .tasks = {{"tasks-seen.jsonl", 5, 1}}};
  std::set<std::string> prints;
  const auto round_trip = [&] {
    models::text::write_manifest(folder.path.string(), m);
    const auto r = models::text::read_manifest(folder.path.string());
    BOOST_TEST(r.fingerprint == m.fingerprint);
    BOOST_TEST(r.seed == m.seed);
    BOOST_TEST(r.val_fraction == m.val_fraction);
    BOOST_TEST(r.train.shards.at(0).checksum == m.train.shards.at(0).checksum);
    BOOST_TEST(r.tasks.at(0).samples == m.tasks.at(0).samples);
    prints.insert(r.fingerprint);
  };
  round_trip();
  m.seed = 1, round_trip();
  m.train.shards[0].checksum = 2, round_trip();
  m.tasks[0].checksum = 3, round_trip();
  m.train.documents = 4, round_trip();
  BOOST_TEST(prints.size() == 5u);
}

BOOST_AUTO_TEST_SUITE_END()
