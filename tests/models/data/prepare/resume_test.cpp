// Calls that are stopped and resumed, duplicates, threads.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/models/data/prepare/samples.h"
#include "braid/tensor/parallel.h"
#include "tests/models/data/prepare/support.h"
#include "tests/support/sanitizer.h"
#include "tests/support/throws.h"

BOOST_AUTO_TEST_SUITE(text_prepare_long)

namespace {

// The thread sanitizer does not know the threads that the child of a fork starts.
const boost::unit_test::enable_if<!braid::test::kThreadSanitizer> kForks;

// Runs `work` in a process that ends, without any clean-up, at the report of this number.
void kill_at(int report,
             const std::function<void(const std::function<void(const models::text::PrepareProgress&)>&)>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int calls = 0;
    try {
      work([&](const models::text::PrepareProgress&) {
        if (++calls == report) ::_exit(7);
      });
    } catch (...) {
    }
    ::_exit(0);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFEXITED(status));
  BOOST_REQUIRE_EQUAL(WEXITSTATUS(status), 7);
}

// Samples of up to a few hundred bytes.
std::string samples(int n) {
  std::string file;
  for (int i = 0; i < n; ++i)
    file += "{\"prompt\": \"question " + std::to_string(i) + "\", \"answer\": \"" +
            std::string(static_cast<size_t>(i % 7 * 50), 'a') + "\"}\n";
  return file;
}

}  // namespace

// A process that is killed in the middle leaves its work; the same call gives the bytes of one that was never stopped.
BOOST_AUTO_TEST_CASE(a_killed_call_is_gone_on_with_to_the_same_bytes, *kForks) {
  TempFolder folder;
  std::string text;
  while (text.size() < 5'300'000) text += "All work and no play, line " + std::to_string(text.size()) + "\n";
  PrepareOptions o{.inputs = {folder.write("a.jsonl", jsonl(300)), folder.write("b.txt", text),
                              folder.write("c.jsonl", jsonl(400)), folder.write("d.txt", text.substr(0, 2'000'000))},
                   .output = folder / "whole",
                   .shard_tokens = 700'000,
                   .dedup = true};
  const auto whole = models::text::prepare(o);
  BOOST_TEST(whole.duplicates == 300);
  const std::string expected = all_files(folder, "whole");
  o.output = folder / "out";
  for (const int killed_at : {2, 4, 6, 8, 9}) {
    kill_at(killed_at, [&](const auto& progress) { models::text::prepare(o, progress); });
    BOOST_TEST(models::text::can_resume_prepare(o.output));
    const auto summary = models::text::prepare(o);
    BOOST_TEST(summary.resumed_bytes > 0);
    BOOST_TEST(summary.duplicates == 300);
    BOOST_TEST((summary.notes == whole.notes));
    BOOST_TEST((all_files(folder, "out") == expected), "killed at report " << killed_at);
    BOOST_TEST(folder.entries() == 6u);  // nothing hidden is left
    std::filesystem::remove_all(o.output);
  }
}

// Neither a wrong call nor a passing error costs the work of an earlier one.
BOOST_AUTO_TEST_CASE(what_a_killed_call_has_left_stays_until_it_is_of_no_use) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("a.txt", thousand_lines())}, .output = folder / "out", .shard_tokens = 997};
  kill_at(2, [&](const auto& progress) { models::text::prepare(o, progress); });
  BOOST_REQUIRE(models::text::can_resume_prepare(o.output));
  PrepareOptions wrong = o;
  wrong.inputs = {folder / "none"};
  BRAID_CHECK_FAILS(models::text::prepare(wrong), ErrorKind::input, "no such file or folder");
  wrong = o;
  wrong.tokenizer = folder / "none";
  BRAID_CHECK_FAILS(models::text::prepare(wrong), ErrorKind::input, "No such file");
  BOOST_TEST(models::text::can_resume_prepare(o.output));
  const std::string shard = folder / ".out.preparing/train-00000.tok";
  std::filesystem::rename(shard, folder / "aside");
  std::filesystem::create_symlink(shard, shard);  // to itself: an error of the system, not a missing file
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::input, "symbolic links");
  std::filesystem::rename(folder / "aside", shard);
  BOOST_TEST(models::text::prepare(o).resumed_bytes > 0);
  // Killed between the two renames with which a file system exchanges folders that cannot at once.
  std::filesystem::rename(o.output, folder / ".out.preparing.old");
  BOOST_TEST(models::text::prepare(o).unchanged);
  folder.write(".out.preparing.old/older", "x");
  BOOST_TEST(models::text::prepare(o).unchanged);
  BOOST_TEST(folder.entries() == 2u);
}

// Killed behind any line of the journal, also inside of one, a call that moves the ends of files gives the same bytes.
BOOST_AUTO_TEST_CASE(a_journal_cut_anywhere_is_resumed, *kForks) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("a.txt", thousand_lines()), folder.write("many.jsonl", jsonl(300)),
                              folder.write("b.txt", thousand_lines())},
                   .output = folder / "whole",
                   .shard_tokens = 997};
  const auto whole = models::text::prepare(o);
  const std::string expected = all_files(folder, "whole");
  o.output = folder / "out";
  // The ends of files have moved by then.
  const auto killed_at_the_end = [&] { kill_at(3, [&](const auto& progress) { models::text::prepare(o, progress); }); };
  killed_at_the_end();
  const std::string journal = folder.read(".out.preparing/journal.jsonl");
  BOOST_TEST(std::count(journal.begin(), journal.end(), '\n') > 15);
  for (size_t cut = journal.size(); cut > 0; cut -= std::min<size_t>(cut, 1500)) {
    if (cut < journal.size()) killed_at_the_end();
    folder.write(".out.preparing/journal.jsonl", journal.substr(0, cut));
    const auto summary = models::text::prepare(o);
    BOOST_TEST(summary.validation.size() == whole.validation.size());
    BOOST_REQUIRE((all_files(folder, "out") == expected));
    std::filesystem::remove_all(o.output);
  }
}

// The same of samples for fine-tuning, with one held back for validation (nothing is drawn at so small a share) and
// with files of their own that validate.
BOOST_AUTO_TEST_CASE(samples_are_gone_on_with_to_the_same_bytes_at_any_number_of_threads, *kForks) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("a.jsonl", samples(1500)), folder.write("b.jsonl", samples(900))},
                   .shard_tokens = 20'000};
  const std::string given = folder.write("v.jsonl", samples(700));
  for (const std::vector<std::string>& val : {std::vector<std::string>(), {given}}) {
    o.val_inputs = val;
    o.val_fraction = 1e-6;
    o.output = folder / "whole";
    const int before = threads();
    set_threads(1);
    const models::text::SampleSummary whole = models::text::prepare_samples(o, {});
    set_threads(3);
    const std::string expected = all_files(folder, "whole");
    BOOST_TEST(whole.prepared.manifest.val.documents == (val.empty() ? 1 : 700));
    o.output = folder / "out";
    for (const int killed_at : val.empty() ? std::vector<int>{1, 3, 9, 10} : std::vector<int>{2, 10, 12, 13}) {
      kill_at(killed_at, [&](const auto& progress) { models::text::prepare_samples(o, {}, progress); });
      BOOST_TEST(models::text::can_resume_prepare(o.output));
      const models::text::SampleSummary made = models::text::prepare_samples(o, {});
      BOOST_TEST(made.prepared.resumed_bytes > 0);
      BOOST_TEST((made.counted == whole.counted && made.longest == whole.longest));
      BOOST_TEST((made.prepared.notes == whole.prepared.notes));
      BOOST_TEST((all_files(folder, "out") == expected), "killed at report " << killed_at);
      std::filesystem::remove_all(o.output);
    }
    set_threads(before);
    std::filesystem::remove_all(folder / "whole");
  }
  kill_at(3, [&](const auto& progress) { models::text::prepare_samples(o, {}, progress); });
  models::text::SampleFormat other;  // begins anew
  other.answer_field = "prompt";
  BOOST_TEST(models::text::prepare_samples(o, other).prepared.resumed_bytes == 0);
  o.inputs.push_back(folder.write("bad.jsonl", "{}\n"));
  o.output = folder / "bad";
  BRAID_CHECK_FAILS(models::text::prepare_samples(o, {}), ErrorKind::input, "bad.jsonl at line 1",
                    "the same command resumes there");
  BOOST_TEST(models::text::can_resume_prepare(o.output));
}

BOOST_AUTO_TEST_CASE(a_stopped_call_is_gone_on_with_unless_something_changed) {
  TempFolder folder;
  std::string text;
  while (text.size() < 3'300'000) text += "All work and no play, line " + std::to_string(text.size()) + "\n";
  PrepareOptions o{.inputs = {folder.write("a.txt", text)},
                   .val_inputs = {folder.write("v.txt", text)},
                   .output = folder / "out",
                   .shard_tokens = 500'000};
  const std::string fingerprint = models::text::prepare(o).manifest.fingerprint;
  struct Stop {};
  const auto stop_at = [&](int call) {
    std::filesystem::remove_all(o.output);
    int calls = 0;
    const auto progress = [&](const models::text::PrepareProgress&) {
      if (++calls == call) throw Stop();
    };
    BOOST_CHECK_THROW(models::text::prepare(o, progress), Stop);
    BOOST_TEST(models::text::can_resume_prepare(o.output));
  };
  for (const int call : {2, 3, 5, 7, 8}) {
    stop_at(call);
    const auto summary = models::text::prepare(o);
    BOOST_TEST(summary.resumed_bytes > 0);
    BOOST_TEST(summary.manifest.fingerprint == fingerprint);
  }
  stop_at(3);  // other options begin anew, and so does damaged work
  o.seed = 1;
  BOOST_TEST(models::text::prepare(o).resumed_bytes == 0);
  stop_at(3);
  const std::string part = ".out.preparing/train-00000.tok";
  std::string bytes = folder.read(part);
  bytes.back() ^= 1;
  folder.write(part, bytes);
  const auto anew = models::text::prepare(o);
  BOOST_TEST(anew.resumed_bytes == 0);
  BOOST_REQUIRE(!anew.notes.empty());
  BOOST_TEST(anew.notes[0].find("left work that cannot be used") != std::string::npos);
  // An error in the inputs keeps the work too, and says so.
  std::filesystem::remove_all(o.output);
  o.inputs.push_back(folder.write("bad.jsonl", "{}\n"));
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::input, "bad.jsonl at line 1",
                    "the same command resumes there");
}

BOOST_AUTO_TEST_CASE(equal_documents_are_left_out_on_request) {
  TempFolder folder;
  std::string big;
  while (big.size() < 2'500'000) big += "line " + std::to_string(big.size()) + "\n";
  PrepareOptions o{.inputs = {folder.write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": \"y\"}\n{\"text\": \"x\"}\n"),
                              folder.write("b.txt", big), folder.write("c.txt", "y"), folder.write("d.txt", big),
                              folder.write("e.txt", big + "z")},
                   .output = folder / "all",
                   .val_fraction = 0};
  BOOST_TEST(models::text::prepare(o).duplicates == 0);
  BOOST_TEST((text_of(o.output, Split::train) == "x|y|x|" + big + "|y|" + big + "|" + big + "z|"));
  o.dedup = true;
  o.output = folder / "some";
  BOOST_TEST(models::text::prepare(o).duplicates == 3);
  BOOST_TEST((text_of(o.output, Split::train) == "x|y|" + big + "|" + big + "z|"));
}

BOOST_AUTO_TEST_CASE(threads_make_no_difference) {
  TempFolder folder;
  PrepareOptions o{.inputs = {folder.write("a.jsonl", jsonl(30000)), folder.write("b.txt", thousand_lines())},
                   .shard_tokens = 100'000};
  std::string expected;
  const int before = threads();
  for (const int n : {1, 3}) {
    set_threads(n);
    o.output = folder / ("out" + std::to_string(n));
    models::text::prepare(o);
    const std::string found = all_files(folder, "out" + std::to_string(n));
    if (expected.empty()) expected = found;
    BOOST_TEST((found == expected));
  }
  set_threads(before);
}

// A tokenizer is trained and used at once, in both forms; a long text cut in parts has the tokens of the whole, and a
// call that was killed gives the same bytes.
BOOST_AUTO_TEST_CASE(a_trained_tokenizer_makes_the_data) {
  TempFolder folder;
  std::string text;
  for (int i = 0; text.size() < 2'300'000; ++i)
    text += "Line " + std::to_string(i * 7919 % 10007) + " of a play:  we're naïve…\n" + (i % 9 == 0 ? "\n \n" : "");
  PrepareOptions o{.inputs = {folder.write("a.txt", text), folder.write("b.jsonl", jsonl(50))},
                   .train_bpe = 300,
                   .val_fraction = 0,
                   .shard_tokens = 100'000};
  for (const std::string form : {"gpt-neox", "llama-3"}) {
    o.bpe_form = form;
    o.output = folder / form;
    const auto whole = models::text::prepare(o);
    const auto tokenizer = models::text::load_tokenizer(o.output);
    BOOST_TEST(tokenizer->vocab_size() == 300);
    BOOST_TEST(whole.manifest.vocab_size == 300);
    std::vector<int32_t> expected;
    tokenizer->encode_text(text, expected);
    BOOST_TEST(expected.size() < text.size() / 2);
    const Dataset d(o.output, Split::train, 1);
    std::vector<int32_t> found(expected.size());
    d.read(0, found);
    BOOST_TEST((found == expected));
    const std::string before = all_files(folder, form);
    o.output = folder / "again";
    int calls = 0;
    struct Stop {};
    BOOST_CHECK_THROW(models::text::prepare(o,
                                            [&](const models::text::PrepareProgress& p) {
                                              if (std::string(p.stage) == "reading text" && ++calls == 2) throw Stop();
                                            }),
                      Stop);
    BOOST_TEST(models::text::prepare(o).resumed_bytes > 0);
    BOOST_TEST((all_files(folder, "again") == before));
    std::filesystem::remove_all(o.output);
  }
  o.train_bpe = 0;  // the tokenizer serves other data
  o.tokenizer = folder / "llama-3";
  BOOST_TEST(models::text::prepare(o).manifest.vocab_size == 300);
  o.train_bpe = 300;
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "give it or `tokenizer`");
  o.tokenizer = "";
  o.train_bpe = 100;
  BRAID_CHECK_FAILS(models::text::prepare(o), ErrorKind::setting, "100 ids is too small");
}

BOOST_AUTO_TEST_SUITE_END()
