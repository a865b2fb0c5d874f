// braid inspect as the real program; its output goes to a pipe, so it is plain.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(inspect_command)

namespace fs = std::filesystem;

namespace {

struct Data {
  Scratch scratch;
  std::string text = (scratch / "text").string(), samples = (scratch / "samples").string();
  Data() {
    write(scratch / "a.jsonl",
          "{\"text\": \"first\\nline\"}\n{\"text\": \"the second document\"}\n{\"text\": \"3\"}\n");
    write(scratch / "b.jsonl",
          "{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n{\"prompt\": \"1+2=\", \"answer\": \"3!\"}\n");
    for (const std::string& command :
         {"prepare " + (scratch / "a.jsonl").string() + " --val-fraction 0 -o " + text,
          "prepare " + (scratch / "b.jsonl").string() + " --answers --val-fraction 0 -o " + samples}) {
      const Outcome made = run(command);
      if (made.code != 0) throw std::runtime_error(made.output);
    }
  }
};
const Data& data() {
  static const Data instance;
  return instance;
}

void shows(const std::string& arguments, const std::vector<std::string>& words) {
  const Outcome result = run("inspect " + arguments);
  BOOST_TEST(result.code == 0, result.output);
  for (const std::string& word : words)
    BOOST_TEST(result.output.find(word) != std::string::npos, "no '" << word << "' in " << result.output);
}

}  // namespace

BOOST_AUTO_TEST_CASE(documents_lengths_and_specials) {
  shows(data().text,
        {": documents, fingerprint ", "tokenizer bytes with 258 ids", "33 tokens in 3 documents",
         "tokens of a document: 2 to 20, 11.0 on average", "         2 to 3                 1  ####",
         "special token 256 <|endoftext|>: 3 times", "document 1, 11 tokens\nfirst\\n\nline<|endoftext|>\n",
         "document 3, 2 tokens\n3<|endoftext|>\n"});
  shows(data().text + " --documents 1 --first 2 --tokens 3", {"document 2, 20 tokens\nthe ...\n"});
  shows(data().samples,
        {": samples, fingerprint ", "38.5% of the tokens are targets", "sample 2, 7 tokens\n1+2=[3!<|endoftext|>]\n"});
}

BOOST_AUTO_TEST_CASE(batches_are_those_of_training) {
  const std::string two = " --batch 1 data.seq_len=16 train.batch_size=1 ";
  shows(data().samples + two,
        {"micro-batch 1 of the order of run.seed = 1: 1 of 1 sequences of 16 tokens, epoch 1",
         "1 sequences of 2 samples, 68.8% full", "sequence 0: 5 of 16 targets are counted, attention within documents",
         "  document 1, tokens 0 to 4\n1+1=[2]  and then [<|endoftext|>]\n",
         "  document 2, tokens 5 to 10\n1+2=[3!]  and then [<|endoftext|>]\n", "  5 tokens of padding\n"});
  shows(data().samples + two + "data.documents=joined --table",
        {"attention across documents", "      3         3      61  =  ->  2\n", "  1  ->  (not counted)\n"});
  shows(data().samples + two + "data.documents=joined",
        {"\n1+1=[2]  and then [<|endoftext|>]\n1+2=[3!]  and then [<|endoftext|>]\n  5 tokens of padding\n"});
  shows(data().text + " --batch 1 data.seq_len=32 train.batch_size=1",
        {"32 of 32 targets are counted", "first\\n\nline"});
  shows(data().text + " --batch 2 data.seq_len=8 train.batch_size=2 data.documents=separate",
        {"2 of 4 sequences of 8 tokens, epoch 1, places 3 to 4\n", "  document 1, tokens 0 to "});
  // A place has the same sequence whatever the batches are.
  const std::string pair = run("inspect " + data().text + " --batch 2 data.seq_len=8 train.batch_size=2").output;
  const std::string one = run("inspect " + data().text + " --batch 4 data.seq_len=8 train.batch_size=1").output;
  BOOST_TEST(one.find(", places 4 to 4\n") != std::string::npos, one);
  BOOST_TEST(pair.ends_with(one.substr(one.find("\nsequence "))), pair << one);
}

BOOST_AUTO_TEST_CASE(bad_use) {
  const auto rejects = [](const std::string& arguments, int code, const std::string& words) {
    const Outcome result = run("inspect " + arguments);
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, "no '" << words << "' in " << result.output);
  };
  rejects(data().text + " --table", 2, "expected --batch N beside them");
  rejects(data().text + " data.seq_len=4", 2, "expected --batch N beside them");
  rejects((data().scratch / "nothing").string(), 3, "dataset.json");
  rejects(data().text + " --first 4", 2, "bad value for --first: expected at most 3, the documents of the train split");
  rejects(data().text + " --batch 1 data.seq_len=400", 3, "too small");
  rejects(data().text + " --batch 1000000000000 train.batch_size=10000000 data.seq_len=8", 2,
          "expected at most 450359962 with");
  rejects("pairs:dates", 2, "pairs:dates is built in: expected a data folder");
}

BOOST_AUTO_TEST_CASE(runs_and_checkpoints) {
  const Scratch scratch;
  const std::string run_folder = (scratch / "run").string(), checkpoint = run_folder + "/step-00000002";
  const std::string train =
      "train model.preset=dcformer-tiny model.n_layer=1 train.batch_size=1 schedule.warmup=0 eval.interval=0 "
      "data.path=" +
      data().text + " run.out=" + run_folder;
  const Outcome trained = run(train + " train.steps=2 data.seq_len=16");
  BOOST_TEST_REQUIRE(trained.code == 0, trained.output);
  shows(run_folder, {"a run folder with 1 checkpoint; a resume takes step-00000002", "latest  ", "log.csv  "});
  shows(checkpoint, {": a checkpoint; every file matches the manifest", "model.safetensors  ", "tensors of F32, ",
                     "step 2, after 2 sequences of 16 tokens", "  00000000 ", "{\"__meta|"});
  for (const char* flag : {" --batch 1", " --tokens 5", " --table", " train.steps=3"})
    BOOST_TEST(run("inspect " + checkpoint + flag).code == 2, flag);

  std::fstream(checkpoint + "/model.safetensors", std::ios::in | std::ios::out).seekp(5000).put('x');
  const Outcome damaged = run("inspect " + checkpoint);
  BOOST_TEST(damaged.code == 7);
  BOOST_TEST(damaged.output.find("damaged checkpoint " + checkpoint + ": model.safetensors has checksum ") !=
                 std::string::npos,
             damaged.output);

  // At another length a run first reads the rest of the epoch: here two sequences of 8 tokens after one of 16.
  fs::remove_all(run_folder);
  BOOST_TEST(run(train + " train.steps=1 data.seq_len=16").code == 0);
  BOOST_TEST(run(train + " train.steps=2 data.seq_len=8").code == 0);
  const std::string settings = run_folder + "/config.resolved.toml";
  const Outcome before = run("inspect " + settings + " --batch 1");
  BOOST_TEST(before.code == 2, before.output);
  BOOST_TEST(
      before.output.find("first 1 sequences at another data.seq_len: expected at least 2 with train.batch_size = 1") !=
          std::string::npos,
      before.output);
  shows(settings + " --batch 2", {"1 of 4 sequences of 8 tokens, epoch 1"});
  shows(settings + " --batch 4", {"1 of 4 sequences of 8 tokens, epoch 2"});
}

BOOST_AUTO_TEST_SUITE_END()
