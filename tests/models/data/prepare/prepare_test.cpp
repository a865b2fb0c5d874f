#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>

#include "braid/models/data/tasks/tasks.h"
#include "tests/models/data/prepare/support.h"
#include "tests/support/throws.h"

BOOST_AUTO_TEST_SUITE(text_prepare)

BOOST_AUTO_TEST_CASE(documents_are_split_whole_and_deterministically) {
  TempFolder folder;
  PrepareOptions o{
      .inputs = {folder.write("in.jsonl", jsonl(400))}, .output = folder / "out", .val_fraction = 0.25, .seed = 3};
  const auto summary = models::text::prepare(o);
  const auto& m = summary.manifest;
  BOOST_TEST(m.train.documents + m.val.documents == 400);
  BOOST_TEST(m.val.documents > 70);
  BOOST_TEST(m.val.documents < 130);
  for (const auto& f : summary.validation) BOOST_TEST(!f.tail);
  BOOST_TEST((m.validation == models::text::Validation::documents));
  const std::string train = text_of(o.output, Split::train), val = text_of(o.output, Split::val);
  for (int i = 0; i < 400; ++i) {
    const std::string document = "document " + std::to_string(i) + "|";
    const auto in = [&](const std::string& t) { return t.starts_with(document) || t.find("|" + document) != t.npos; };
    BOOST_TEST(in(train) != in(val), document);
  }
  // The same again gives the same bytes; another seed another split; more documents move none.
  const std::string before = all_files(folder, "out");
  models::text::prepare(o);
  BOOST_TEST((all_files(folder, "out") == before));
  o.output = folder / "out2";
  o.replace = true;
  o.seed = 4;
  models::text::prepare(o);
  BOOST_TEST((text_of(o.output, Split::val) != val));
  o.seed = 3;
  o.inputs = {folder.write("more.jsonl", jsonl(450))};
  models::text::prepare(o);
  BOOST_TEST((text_of(o.output, Split::val).starts_with(val)));
  BOOST_TEST(Dataset(folder / "out", Split::train, 8).fingerprint() == m.fingerprint);
  BOOST_TEST(Dataset(o.output, Split::train, 8).fingerprint() != m.fingerprint);
}

BOOST_AUTO_TEST_CASE(a_pattern_may_lead_back_from_a_folder) {
  TempFolder folder;
  folder.write("sub/other.txt", "other\n"), folder.write("in.txt", "some text\n");
  PrepareOptions o{.inputs = {folder / "s*/../in.txt"}, .output = folder / "out", .val_fraction = 0};
  models::text::prepare(o);
  BOOST_TEST(text_of(o.output, Split::train) == "some text\n|");
}

BOOST_AUTO_TEST_CASE(named_bytes_that_are_no_text_are_taken_and_noted) {
  TempFolder folder;
  PrepareOptions o{
      .inputs = {folder.write("in.bin", std::string("a\0b", 3))}, .output = folder / "out", .val_fraction = 0};
  const auto summary = models::text::prepare(o);
  BOOST_REQUIRE_EQUAL(summary.notes.size(), 1u);
  BOOST_TEST(summary.notes[0].find("in.bin is not text (NUL at byte 1)") != std::string::npos, summary.notes[0]);
  BOOST_TEST((text_of(o.output, Split::train) == std::string("a\0b|", 4)));
}

BOOST_AUTO_TEST_CASE(a_single_document_is_split_at_its_tail) {
  TempFolder folder;
  const std::string text = thousand_lines();
  PrepareOptions o{
      .inputs = {folder.write("in.txt", text)}, .output = folder / "out", .replace = true, .val_fraction = 0.1};
  for (const int64_t shard : {int64_t{1} << 28, int64_t{1000}, int64_t{997}, int64_t{1}, int64_t{7}}) {
    if (shard < 100 && o.inputs.size() == 1) o.inputs = {folder.write("small.txt", text.substr(0, 300))};
    const size_t size = shard < 100 ? 300 : text.size();
    o.shard_tokens = shard;
    const auto summary = models::text::prepare(o);
    BOOST_REQUIRE_EQUAL(summary.validation.size(), 1u);
    BOOST_TEST(summary.validation[0].tail);
    BOOST_TEST(summary.validation[0].tokens == summary.manifest.val.tokens);
    const std::string train = text_of(o.output, Split::train), val = text_of(o.output, Split::val);
    BOOST_TEST((train.substr(0, train.size() - 1) + val == text.substr(0, size) + "|"), "shards of " << shard);
    if (shard > 100) {  // a line is looked for within one shard
      BOOST_TEST(train.ends_with("\n|"));
      BOOST_TEST(val.starts_with("line "));
    }
    BOOST_TEST(static_cast<double>(val.size()) < 0.1 * static_cast<double>(size) + 2);
    BOOST_TEST(static_cast<double>(val.size()) > 0.04 * static_cast<double>(size));
    BOOST_TEST(summary.manifest.train.tokens == static_cast<int64_t>(train.size()));
  }
  o.shard_tokens = 1 << 20;
  o.val_fraction = 0;
  BOOST_TEST(models::text::prepare(o).validation.empty());
  BOOST_TEST(models::text::read_manifest(o.output).val.tokens == 0);
}

// The fingerprint of one file as it was before files were split one by one: runs trained on it continue.
BOOST_AUTO_TEST_CASE(one_file_gives_the_bytes_it_always_gave) {
  TempFolder folder;
  const std::string text = thousand_lines();
  PrepareOptions o{.inputs = {folder.write("in.txt", text)}, .output = folder / "out", .shard_tokens = 3000};
  BOOST_TEST(models::text::prepare(o).manifest.fingerprint == "1d8b3e43cf19fa46");
  o.inputs = {folder.write("in.jsonl", jsonl(12))};
  o.output = folder / "out2";
  o.val_fraction = 0.3;
  BOOST_TEST(models::text::prepare(o).manifest.fingerprint == "d9ba5ce73d81faf2");
}

BOOST_AUTO_TEST_CASE(each_of_few_files_gives_its_share_to_validation) {
  TempFolder folder;
  std::string a, b;
  for (int i = 0; i < 1000; ++i) a += "alpha " + std::to_string(i) + "\n";
  for (int i = 0; i < 300; ++i) b += "beta " + std::to_string(i) + "\n";
  PrepareOptions o;
  o.inputs = {folder.write("a.txt", a), folder.write("many.jsonl", jsonl(200)), folder.write("b.txt", b)};
  o.output = folder / "out";
  o.replace = true;
  for (const int64_t shard : {int64_t{1} << 28, int64_t{997}, int64_t{100}}) {
    o.shard_tokens = shard;
    const auto summary = models::text::prepare(o);
    BOOST_REQUIRE_EQUAL(summary.validation.size(), 3u);
    for (size_t i = 0; i < 3; ++i) BOOST_TEST(summary.validation[i].tail == (i != 1));
    const std::string train = text_of(o.output, Split::train), val = text_of(o.output, Split::val);
    // Drawn documents first, then the ends in the order of the files.
    const size_t tail_a = val.find("alpha"), tail_b = val.find("beta");
    BOOST_REQUIRE((tail_a < tail_b && tail_b < val.size()));
    BOOST_TEST((a + "|").ends_with(val.substr(tail_a, tail_b - tail_a)));
    BOOST_TEST((b + "|").ends_with(val.substr(tail_b)));
    BOOST_TEST(static_cast<double>(tail_b - tail_a) > 0.04 * double(a.size()));
    BOOST_TEST(static_cast<double>(val.size() - tail_b) > 0.04 * double(b.size()));
    const std::string kept_a = a.substr(0, a.size() + 1 - (tail_b - tail_a)) + "|document";
    BOOST_TEST(train.starts_with(kept_a));
    BOOST_TEST(train.ends_with("|" + b.substr(0, b.size() + 1 - (val.size() - tail_b)) + "|"));
    BOOST_TEST(train.size() + val.size() == a.size() + b.size() + 2 + 2 + text_of_jsonl(200));
    const auto m = models::text::read_manifest(o.output);
    BOOST_TEST((m.validation == models::text::Validation::each_file));
    BOOST_REQUIRE_EQUAL(m.validation_files.size(), 3u);
    BOOST_TEST(m.validation_files[0].file == o.inputs[0]);
    BOOST_TEST(m.validation_files[0].tokens == static_cast<int64_t>(tail_b - tail_a));
  }
}

BOOST_AUTO_TEST_CASE(named_files_validate_and_all_others_train) {
  TempFolder folder;
  folder.write("in/a.txt", "alpha\n");
  folder.write("in/b.txt", "beta\n");
  const std::string valid = folder.write("in/valid.txt", "gamma\n");
  PrepareOptions o{.inputs = {folder / "in"}, .val_inputs = {valid}, .output = folder / "out"};
  const auto summary = models::text::prepare(o);
  BOOST_TEST(text_of(o.output, Split::train) == "alpha\n|beta\n|");
  BOOST_TEST(text_of(o.output, Split::val) == "gamma\n|");
  BOOST_REQUIRE_EQUAL(summary.notes.size(), 1u);
  BOOST_TEST(summary.notes[0].find("valid.txt is for validation: left out of") != std::string::npos);
  BOOST_TEST((models::text::read_manifest(o.output).validation == models::text::Validation::given));
  o.inputs.push_back(valid);
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "to train on and as `val_inputs` to validate on");
}

BOOST_AUTO_TEST_CASE(other_data_are_replaced_on_request_only) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("in.txt", "some text\n")}, .output = folder / "out"};
  BOOST_TEST(!models::text::prepare(o).unchanged);
  const std::string before = all_files(folder, "out");
  const auto again = models::text::prepare(o);
  BOOST_TEST(again.unchanged);
  BOOST_TEST(again.replaced.empty());
  o.val_fraction = 0.3;  // found before anything is read
  bool read = false;
  const auto progress = [&](const models::text::PrepareProgress&) { read = true; };
  BRAID_CHECK_FAILS(models::text::prepare(o, progress), ErrorKind::setting, "holds other data", "`replace`");
  BOOST_TEST(!read);
  o.val_fraction = 0.05;
  folder.write("in.txt", "some other text\n");
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "holds other data", "would not resume");
  BOOST_TEST((all_files(folder, "out") == before));
  o.replace = true;
  BOOST_TEST(models::text::prepare(o).replaced.starts_with("data with fingerprint " + again.manifest.fingerprint));
  BOOST_TEST((all_files(folder, "out") != before));
  folder.write("out/dataset.json", "{");
  o.replace = false;
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "data that cannot be read", "`replace`");
}

BOOST_AUTO_TEST_CASE(every_cut_of_a_tiny_document_works) {
  TempFolder folder;
  PrepareOptions o{.output = folder / "out", .replace = true};
  for (const int64_t shard : {1, 2, 3, 100})
    for (int n = 1; n <= 9; ++n)
      for (const double fraction : {0.01, 0.3, 0.5, 0.99}) {
        const std::string text = std::string("abcdefghi").substr(0, static_cast<size_t>(n));
        o.inputs = {folder.write("in.txt", text)};
        o.shard_tokens = shard;
        o.val_fraction = fraction;
        models::text::prepare(o);
        const auto m = models::text::read_manifest(o.output);
        // One more end of document; a single byte is for training alone.
        BOOST_REQUIRE_EQUAL(m.train.tokens + m.val.tokens, n == 1 ? 2 : n + 2);
        BOOST_REQUIRE_EQUAL(m.val.tokens >= 2, n > 1);
        for (const auto& s : m.train.shards) models::text::ShardReader(o.output + "/" + s.file).verify();
        for (const auto& s : m.val.shards) models::text::ShardReader(o.output + "/" + s.file).verify();
      }
}

BOOST_AUTO_TEST_CASE(tasks_come_with_items_and_mix_with_text) {
  TempFolder folder;
  PrepareOptions o{
      .inputs = {folder.write("in.jsonl", jsonl(100))}, .tasks = 200, .output = folder / "out", .task_items = 1};
  const auto m = models::text::prepare(o).manifest;
  BOOST_TEST(m.train.documents + m.val.documents == 100 + 200 + 10);
  const std::string train = text_of(o.output, Split::train), val = text_of(o.output, Split::val);
  BOOST_TEST(train.starts_with("document 0|"));
  BOOST_TEST((train.ends_with(models::text::make_task_sample(models::text::Vocabulary::train, 0, 199).text + "|")));
  BOOST_TEST((val.ends_with(models::text::make_task_sample(models::text::Vocabulary::train, 0, 209).text + "|")));
  BOOST_REQUIRE_EQUAL(m.tasks.size(), 2u);
  const auto seen = models::text::read_task_items(o.output + "/" + m.tasks[0].file);
  const auto held_out = models::text::read_task_items(o.output + "/" + m.tasks[1].file);
  BOOST_TEST(seen.size() == static_cast<size_t>(models::text::task_count()));
  BOOST_TEST(held_out.size() == seen.size());
  for (const auto& item : seen) BOOST_TEST((train.find(item.text) == std::string::npos));
  BOOST_TEST((held_out[0].text == models::text::make_task_sample(models::text::Vocabulary::held_out, 0, 210).text));
  o.inputs.clear();
  o.replace = true;
  BOOST_TEST(models::text::prepare(o).manifest.train.documents == 200);
}

BOOST_AUTO_TEST_CASE(words_of_the_tasks_count_for_a_tokenizer) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("in.jsonl", jsonl(100))},
                   .tasks = 2000,
                   .task_set = models::text::TaskSet::recall,
                   .output = folder / "out",
                   .train_bpe = 600,
                   .task_items = 3};
  const auto m = models::text::prepare(o).manifest;
  BOOST_TEST(m.train.documents + m.val.documents == 100 + 2000 + 100);
  const auto tokenizer = models::text::load_tokenizer(o.output);
  const auto items = models::text::read_task_items(o.output + "/" + m.tasks.at(1).file);
  BOOST_TEST(items.size() == 15u);
  for (const auto& item : items) {
    for (const auto& answer : models::text::tokenize_task(*tokenizer, item).answers)
      BOOST_TEST(answer.end - answer.begin == 1);  // a word, a token
  }
}

BOOST_AUTO_TEST_CASE(large_documents_pass_in_pieces) {
  TempFolder folder;
  std::string text;
  while (text.size() < 3'500'000) text += "All work and no play, line " + std::to_string(text.size()) + "\n";
  PrepareOptions o{.inputs = {folder.write("in.txt", text)}, .output = folder / "out"};
  int64_t last = 0, calls = 0;
  const auto summary = models::text::prepare(o, [&](const models::text::PrepareProgress& p) {
    if (std::string(p.stage) != "reading text") return;
    BOOST_TEST(p.done >= last);
    BOOST_TEST(p.total == static_cast<int64_t>(text.size()));
    last = p.done;
    ++calls;
  });
  BOOST_TEST(calls >= 4);
  BOOST_TEST(last == static_cast<int64_t>(text.size()));
  BOOST_TEST(summary.input_bytes == last);
  const std::string train = text_of(o.output, Split::train), val = text_of(o.output, Split::val);
  BOOST_TEST((train.substr(0, train.size() - 1) + val == text + "|"));
}

BOOST_AUTO_TEST_CASE(an_old_folder_stays_until_the_new_one_is_complete) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("in.txt", "first text\nsecond line\n")}, .output = folder / "out"};
  models::text::prepare(o);
  const std::string before = all_files(folder, "out");
  o.inputs.push_back(folder.write("bad.jsonl", "{}\n"));
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::input, "bad.jsonl at line 1");
  o.inputs.pop_back();
  struct Stop {};
  BOOST_CHECK_THROW(models::text::prepare(o, [](const models::text::PrepareProgress&) { throw Stop(); }), Stop);
  {  // a full disk
    rlimit old{}, now{};
    ::getrlimit(RLIMIT_FSIZE, &old);
    now = old;
    now.rlim_cur = 512;
    auto* handler = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &now);
    BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::output, "cannot write", "File too large");
    ::setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
  }
  BOOST_TEST((all_files(folder, "out") == before));
  BOOST_TEST(folder.entries() == 3u);  // in.txt, bad.jsonl, out
}

BOOST_AUTO_TEST_CASE(only_our_own_folders_are_replaced) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("in.txt", "some text")}};
  folder.write("home/letter.txt", "dear");
  o.output = folder / "home";
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "letter.txt", "name another folder");
  o.output = folder / "in.txt";
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "expected a folder, found a file");
  std::filesystem::create_directories(folder / "empty");
  o.output = folder / "empty/";
  models::text::prepare(o);
  folder.write("empty/notes.md", "mine");
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "notes.md");
  BOOST_TEST(folder.read("empty/notes.md") == "mine");
  folder.write("tok/tokenizer.json", "{}");  // a familiar name, but no prepared data
  o.output = folder / "tok";
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "without a dataset.json");
  o.output = folder / "a/b/c";
  models::text::prepare(o);
  BOOST_TEST(std::filesystem::exists(folder / "a/b/c/dataset.json"));
}

BOOST_AUTO_TEST_CASE(output_inside_an_input_folder_is_not_read_back) {
  TempFolder folder;
  folder.write("in/a.txt", "text");
  PrepareOptions o{.inputs = {folder / "in"}, .output = folder / "in/data"};
  const auto first = models::text::prepare(o).manifest.fingerprint;
  BOOST_TEST(models::text::prepare(o).manifest.fingerprint == first);
}

BOOST_AUTO_TEST_CASE(two_at_once_do_not_mix_and_leftovers_are_swept) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("in.txt", "some text")}, .output = folder / "out"};
  folder.write(".out.preparing/train-00000.tok", "left over by a process that died");
  const int fd = ::open((folder / ".out.preparing").c_str(), O_RDONLY | O_DIRECTORY);
  BOOST_REQUIRE(fd >= 0 && ::flock(fd, LOCK_EX) == 0);
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::output, "another process is preparing it");
  BOOST_TEST(std::filesystem::exists(folder / ".out.preparing/train-00000.tok"));
  ::close(fd);
  models::text::prepare(o);
  BOOST_TEST(!std::filesystem::exists(folder / ".out.preparing"));
  BOOST_TEST(Dataset(o.output, Split::train, 1).tokens() > 1);
}

BOOST_AUTO_TEST_CASE(options_are_checked_before_anything_is_touched) {
  TempFolder folder;
  PrepareOptions o{.output = folder / "out"};
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "nothing to prepare");
  o.tasks = -1;
  o.inputs = {folder.write("in.txt", "x")};
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "task samples");
  o.tasks = 0;
  o.val_fraction = 1;
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "validation fraction");
  o.val_fraction = std::nan("");
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "validation fraction");
  o.val_fraction = 0.1;
  o.output = "";
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "-o DIR");
  o.output = folder / "out";
  o.tokenizer = folder / "none";
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::input, "tokenizer.json");
  o.tokenizer = "";
  o.inputs = {folder.write("blank.jsonl", "\n\n{\"text\": \"\"}\n")};
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::input, "hold no text");
  BOOST_TEST(folder.entries() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
