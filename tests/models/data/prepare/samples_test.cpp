#include "braid/models/data/prepare/samples.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "braid/models/data/text/batches.h"
#include "braid/models/data/text/dataset.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(sample_folders)

namespace {

std::string lines(int n) {
  std::string text;
  for (int i = 0; i < n; ++i)
    text += "{\"prompt\": \"" + std::string(static_cast<size_t>(i % 5), 'p') + "?\", \"answer\": \"" +
            std::string(static_cast<size_t>(1 + i % 7), 'a') + std::to_string(i) + "\"}\n";
  return text;
}

PrepareOptions options(const TempFolder& folder, double val_fraction = 0) {
  return {.inputs = {folder / "in.jsonl"}, .output = folder / "out", .val_fraction = val_fraction};
}

std::string text_of(const Dataset& data, int64_t sample) {
  const auto [begin, end] = data.sample(sample);
  std::vector<int32_t> tokens(static_cast<size_t>(end - begin));
  data.read(begin, tokens);
  return data.tokenizer().decode(tokens, true);
}

}  // namespace

BOOST_AUTO_TEST_CASE(samples_come_back_with_their_targets) {
  TempFolder folder;
  folder.write("in.jsonl", "{\"prompt\": \"ab\", \"answer\": \"cd\"}\n\n{\"prompt\": \"x\", \"answer\": \"y\"}\n");
  const SampleSummary made = prepare_samples(options(folder), {});
  BOOST_TEST(made.prepared.manifest.train.documents == 2);
  BOOST_TEST(made.counted == 5);
  BOOST_TEST(made.longest == 5);
  const Dataset data(folder / "out", Split::train, 8, {.documents = DocumentAttention::separate});
  BOOST_TEST(data.has_samples());
  BOOST_TEST(data.size() == 1);
  const Sequence s = data.sequence(0);
  const int32_t eos = 256, pad = 257, no = -100;
  BOOST_TEST(s.ids == std::vector<int32_t>({'a', 'b', 'c', 'd', 'x', 'y', pad, pad}), boost::test_tools::per_element());
  BOOST_TEST(s.targets == std::vector<int32_t>({no, 'c', 'd', eos, 'y', eos, no, no}),
             boost::test_tools::per_element());
  BOOST_TEST(s.positions == std::vector<int32_t>({0, 1, 2, 3, 0, 1, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(Dataset(folder / "out", Split::train, 8).sequence(0).positions.empty());
  BOOST_TEST(models::text::read_batch(data, {0}).has("positions"));
  BRAID_CHECK_FAILS(data.window(0), ErrorKind::misuse, "0 windows");
  BRAID_CHECK_FAILS(data.sequence(1), ErrorKind::misuse, "sequence 1");
}

BOOST_AUTO_TEST_CASE(every_sample_is_in_one_sequence_or_reported) {
  TempFolder folder;
  folder.write("in.jsonl", lines(200));
  PrepareOptions o = options(folder);
  o.shard_tokens = 300;  // samples stay in one shard
  const SampleSummary made = prepare_samples(o, {});
  BOOST_TEST(made.prepared.manifest.train.shards.size() > 5u);
  for (const Packing packing : {Packing::first_fit, Packing::in_order, Packing::none}) {
    for (const bool cut : {false, true}) {
      const Dataset data(o.output, Split::train, 11, {.packing = packing, .cut_long_samples = cut});
      int64_t targets = 0, inputs = 0;
      std::vector<int> times(200, 0);
      for (int64_t i = 0; i < data.size(); ++i) {
        const Sequence s = data.sequence(i);
        BOOST_REQUIRE(s.ids.size() == 11u);
        for (const int32_t t : s.targets) targets += t >= 0;
        for (const int32_t id : s.ids) inputs += id != 257;
        for (const int64_t n : data.samples_of(i)) ++times.at(static_cast<size_t>(n));
      }
      const SampleCounts& counts = data.sample_counts();
      BOOST_TEST(counts.samples == 200);
      BOOST_TEST(counts.too_long > 0);
      BOOST_TEST(counts.longest == made.longest);
      BOOST_TEST(counts.packed_tokens == inputs);
      BOOST_TEST(std::count(times.begin(), times.end(), 1) == (cut ? 200 : 200 - counts.too_long));
      BOOST_TEST((cut ? targets < made.counted : targets <= made.counted));
    }
  }
  const Dataset wide(o.output, Split::train, 64);
  BOOST_TEST(wide.sample_counts().too_long == 0);
  BOOST_TEST(wide.size() < 64);
  BOOST_TEST((Dataset(o.output, Split::train, 64, {.packing = Packing::none}).fingerprint() != wide.fingerprint()));
  BRAID_CHECK_FAILS(Dataset(o.output, Split::train, 1), ErrorKind::input, "no sample of at most 2 tokens",
                    "found 200 samples");
}

// Cut behind its prompt, a sample has nothing to learn from.
BOOST_AUTO_TEST_CASE(samples_whose_answer_is_cut_off_are_left_out) {
  TempFolder folder;
  folder.write("in.jsonl", "{\"prompt\": \"" + std::string(20, 'p') + "\", \"answer\": \"lost\"}\n" +
                               "{\"prompt\": \"" + std::string(7, 'p') + "\", \"answer\": \"a\"}\n" +
                               "{\"prompt\": \"" + std::string(8, 'p') + "\", \"answer\": \"bc\"}\n" +
                               "{\"prompt\": \"" + std::string(9, 'p') + "\", \"answer\": \"d\"}\n");
  prepare_samples(options(folder), {});
  const Dataset data(folder / "out", Split::train, 8, {.packing = Packing::none, .cut_long_samples = true});
  BOOST_TEST(data.sample_counts().without_target == 2);  // of 20 and of 9: targets end behind the eighth input
  BOOST_TEST(data.sample_counts().too_long == 3);
  BOOST_REQUIRE(data.size() == 2);
  for (int64_t i = 0; i < 2; ++i) {
    const Sequence s = data.sequence(i);
    BOOST_TEST(std::ranges::any_of(s.targets, [](int32_t t) { return t >= 0; }));
  }
  const Dataset whole(folder / "out", Split::train, 30, {.cut_long_samples = true});
  BOOST_TEST(whole.sample_counts().without_target == 0);
  folder.write("in.jsonl", "{\"prompt\": \"" + std::string(20, 'p') + "\", \"answer\": \"lost\"}\n");
  PrepareOptions again = options(folder);
  again.output = folder / "none";
  prepare_samples(again, {});
  BRAID_CHECK_FAILS(Dataset(folder / "none", Split::train, 8, {.cut_long_samples = true}), ErrorKind::input,
                    "no sample with an answer within 9 tokens", "or use a longer sequence length");
}

BOOST_AUTO_TEST_CASE(validation_gets_whole_samples_by_a_hash_and_at_least_one) {
  TempFolder folder;
  folder.write("in.jsonl", lines(300) + lines(300));
  const PrepareOptions o = options(folder, 0.2);
  const SampleSummary made = prepare_samples(o, {});
  const Manifest& m = made.prepared.manifest;
  BOOST_TEST(m.train.documents + m.val.documents == 600);
  BOOST_TEST((m.val.documents > 70 && m.val.documents < 170));
  const Dataset train(o.output, Split::train, 64), val(o.output, Split::val, 64);
  std::set<std::string> of_val;
  for (int64_t i = 0; i < m.val.documents; ++i) of_val.insert(text_of(val, i));
  BOOST_TEST(std::ssize(of_val) * 2 == m.val.documents);  // equal samples stay together
  for (int64_t i = 0; i < m.train.documents; ++i) BOOST_TEST(!of_val.contains(text_of(train, i)));
  BOOST_TEST(prepare_samples(o, {}).prepared.unchanged);

  for (const int n : {1, 2, 3, 10}) {
    TempFolder few;
    few.write("in.jsonl", lines(n));
    const Manifest small = prepare_samples(options(few, 1e-6), {}).prepared.manifest;
    BOOST_TEST(small.val.documents == (n > 1 ? 1 : 0));
    BOOST_TEST(small.train.documents + small.val.documents == n);
  }
  TempFolder given;
  given.write("in.jsonl", lines(10));
  given.write("val.jsonl", lines(4));
  PrepareOptions two = options(given, 0.5);
  two.val_inputs = {given / "val.jsonl"};
  const Manifest both = prepare_samples(two, {}).prepared.manifest;
  BOOST_TEST((both.train.documents == 10 && both.val.documents == 4));
}

BOOST_AUTO_TEST_CASE(bad_inputs_and_damage_are_errors) {
  TempFolder folder;
  const auto rejects = [&](const std::string& text, ErrorKind kind, const std::string& words) {
    folder.write("in.jsonl", text);
    BRAID_CHECK_FAILS(prepare_samples(options(folder), {}), kind, words);
  };
  rejects("{\"prompt\": \"x\", \"answer\": \"y\"}\n{\"prompt\": 1}\n", ErrorKind::input, "in.jsonl at line 2");
  rejects("\n", ErrorKind::input, "no sample to train on");
  PrepareOptions text = options(folder);
  text.inputs = {folder.write("book.txt", "once")};
  BRAID_CHECK_FAILS(prepare_samples(text, {}), ErrorKind::input, "expected a file .jsonl");
  folder.write("in.jsonl", "{\"prompt\": \"x\", \"answer\": \"\"}\n" + lines(20));
  PrepareOptions o = options(folder);
  prepare_samples(o, {});
  SampleFormat chat{.chat = ChatTemplate::parse("simple")};
  BRAID_CHECK_FAILS(prepare_samples(o, chat), ErrorKind::setting, "holds other data", "`replace`");
  o.replace = true;
  BOOST_TEST(prepare_samples(o, chat).prepared.manifest.samples->turn == "{role}: {content}\n");
  // Marks of another split, and a manifest without them.
  const Manifest m = read_manifest(o.output);
  Manifest other = m;
  other.train.shards[0].marks_checksum ^= 1;
  write_manifest(o.output, other);
  BRAID_CHECK_FAILS(Dataset(o.output, Split::train, 64), ErrorKind::input, "train-marks-00000.tok",
                    "the shard is not the one");
  other = m;
  other.train.shards[0].marks.clear();
  write_manifest(o.output, other);
  BRAID_CHECK_FAILS(read_manifest(o.output), ErrorKind::input, "marks beside every shard of samples");
  other = m;
  other.train.documents += 1;
  write_manifest(o.output, other);
  BRAID_CHECK_FAILS(Dataset(o.output, Split::train, 64), ErrorKind::input, "the marks are not those of the samples");
}

// Folders of text have no trace of it: bytes and fingerprint as before.
BOOST_AUTO_TEST_CASE(text_folders_stay_as_they_are) {
  TempFolder folder;
  folder.write("in.txt", std::string(500, 'x'));
  PrepareOptions o = options(folder);
  o.inputs = {folder / "in.txt"};
  BOOST_TEST(!prepare(o).manifest.samples);
  const std::string json = folder.read("out/dataset.json");
  BOOST_TEST(json.find("marks") == std::string::npos);
  BOOST_TEST(json.find("samples") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
