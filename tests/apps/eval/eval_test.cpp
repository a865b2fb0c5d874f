// braid eval as the real program.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "braid/models/folders/pretrained.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(eval_command)

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// A model of bytes, with a tokenizer and without, and a file for every kind of task.
struct Files {
  Scratch scratch;
  std::string model = path("model"), bare = path("bare");
  Files() {
    const auto made = byte_model();
    const models::text::ByteTokenizer tokenizer;
    fs::create_directory(model), fs::create_directory(bare);
    models::save_model(*made, &tokenizer, model);
    models::save_model(*made, nullptr, bare);
    std::string choices, words;
    for (int i = 0; i < 12; ++i) {
      const std::string n = std::to_string(i);
      choices += "{\"context\": \"Item " + n + " is\", \"choices\": [\"odd\", \"even\", \"" + n +
                 "\"], \"gold\": " + std::to_string(i % 3) + "}\n";
      words += "{\"text\": \"the fox number " + n + " runs\"}\n";
    }
    write(path("choices.jsonl"), choices);
    write(path("words.jsonl"), words);
    write(path("text.txt"),
          "A text that is longer than the window of sixty-four tokens, so that there are\nseveral of them.\n");
    write(path("drawn.toml"),
          "kind = \"generate\"\ncontext = \"{text}\"\ntarget = [\"{text|last_word}\", \"a\"]\nstop = \"e\"\n"
          "max_tokens = 12\nfilter = \"first_line|strip\"\nmatch = \"contains\"\nignore = [\"case\", \"commas\"]\n"
          "samples = 3\ntemperature = 1.5\n");
    write(path("brackets.jsonl"),
          "{\"task_id\": \"task0\", \"texts\": \"\\na fox\\nan [ ox ]\\n\"}\n"
          "{\"task_id\": \"task1\", \"texts\": \"\\na [ cat ]\\nan [ ape ]\\n\"}\n");
  }
  std::string path(const std::string& name) const { return (scratch / name).string(); }
  std::string tasks() const {
    return "choices:" + path("choices.jsonl") + " lambada:" + path("words.jsonl") + " text:" + path("text.txt") +
           " in-context:" + path("brackets.jsonl") + " in-context " + drawn();
  }
  std::string drawn() const { return path("drawn.toml") + ":" + path("words.jsonl"); }
};

const Files& files() {
  static const Files made;
  return made;
}

std::string json_of(const std::string& flags) {
  const std::string file = files().path("out.json");
  fs::remove(file);
  const Outcome result = run("eval " + files().model + " " + flags + " --json " + file);
  BOOST_TEST_REQUIRE(result.code == 0, result.output);
  return slurp(file);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_task) {
  const json report = json::parse(json_of(files().tasks()));
  const json& results = report["results"];
  BOOST_REQUIRE(results.size() == 6u);
  const auto metrics = [&](size_t i) {
    std::vector<std::string> names;
    for (const auto& [name, metric] : results[i]["metrics"].items()) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;
  BOOST_TEST(metrics(0) == (Names{"acc", "acc_bytes", "acc_norm"}), boost::test_tools::per_element());
  BOOST_TEST(metrics(1) == (Names{"acc", "perplexity"}), boost::test_tools::per_element());
  BOOST_TEST(results[2]["metrics"]["tokens"]["value"] == 95);
  BOOST_TEST(results[2]["items"] == 2);
  BOOST_TEST(results[3]["metrics"]["answers"]["value"] == 3);
  BOOST_TEST(results[4]["metrics"]["tasks"]["value"] > 1);
  BOOST_TEST(metrics(5) == (Names{"answered", "contains", "pass@1", "pass@3"}), boost::test_tools::per_element());
  BOOST_TEST(results[5]["items"] == 12);
  // Random weights know nothing of bytes: near 258 equally likely ones.
  BOOST_TEST(results[2]["metrics"]["byte_perplexity"]["value"].get<double>() > 50);
  BOOST_TEST(results[0]["metrics"]["acc"]["stderr"].is_number());
}

BOOST_AUTO_TEST_CASE(the_same_bits_for_any_batch_and_threads) {
  const std::string tasks = files().tasks() + " --shots 0 --limit 8";
  const std::string one = json_of(tasks + " --batch 1 --threads 1");
  BOOST_TEST(json_of(tasks + " --batch 7 --threads 2") == one);
}

BOOST_AUTO_TEST_CASE(two_models_are_compared_item_by_item) {
  const models::text::ByteTokenizer tokenizer;
  const std::string other = files().path("other"), task = "lambada:" + files().path("words.jsonl"),
                    out = files().path("compared");
  fs::create_directory(other);
  models::save_model(*byte_model("258", 6), &tokenizer, other);
  const json report = json::parse(json_of(task + " --compare " + other + " -o " + out));
  const json& compare = report["compare"];
  BOOST_TEST(compare["model"] == other);
  // The means are those of the metrics; the logarithms of the two perplexities differ by the paired difference.
  const json& logprob = compare["differences"][1];
  BOOST_TEST(logprob["result"] == "logprob");
  const double first = report["results"][0]["metrics"]["perplexity"]["value"],
               second = compare["results"][0]["metrics"]["perplexity"]["value"];
  BOOST_TEST(first != second);
  BOOST_TEST(logprob["difference"].get<double>() == std::log(first / second), boost::test_tools::tolerance(1e-9));
  BOOST_TEST(logprob["stderr"].get<double>() > 0);
  BOOST_TEST(logprob["first_higher"].get<int>() + logprob["second_higher"].get<int>() == 12);
  BOOST_TEST(fs::exists(out + "/compare/lambada-words.jsonl"));
  const json same = json::parse(json_of(task + " --compare " + files().model))["compare"]["differences"][1];
  BOOST_TEST(same["difference"] == 0.0);
  BOOST_TEST(same["p"] == 1.0);
  const Outcome none = run("eval " + files().model + " " + task + " --compare " + files().path("nowhere"));
  BOOST_TEST(none.code == 3, none.output);
}

// A file that holds the first lines alone stands for a process that was killed behind them.
BOOST_AUTO_TEST_CASE(a_killed_run_goes_on_to_the_same_numbers) {
  const std::string choices = "choices:" + files().path("choices.jsonl") + " --shots 2";
  for (const auto& [task, name, count] :
       {std::tuple(choices, "choices-choices", 13), std::tuple(files().drawn() + " --limit 5", "drawn-words", 6)}) {
    const std::string out = files().path(std::string("resumed-") + name), whole = json_of(task);
    BOOST_TEST(json_of(task + " -o " + out) == whole);
    const std::string file = out + "/" + name + ".jsonl", lines = slurp(file);
    BOOST_TEST(std::count(lines.begin(), lines.end(), '\n') == count);
    for (size_t end = 0; (end = lines.find('\n', end)) != std::string::npos; end += 1) {
      for (const size_t torn : {size_t{0}, size_t{9}}) {
        write(file, lines.substr(0, end + 1 + torn));
        BOOST_REQUIRE_EQUAL(json_of(task + " -o " + out), whole);
        BOOST_REQUIRE_EQUAL(slurp(file), lines);
      }
    }
    const Outcome other = run("eval " + files().model + " " + task + " --seed 1 -o " + out);
    BOOST_TEST(other.code == 2);
    BOOST_TEST(other.output.find("holds results of something else: expected seed = 1, found 0") != std::string::npos,
               other.output);
  }
}

// What was written, what was compared, and the same results from two models.
BOOST_AUTO_TEST_CASE(generated_texts_are_kept_and_compared) {
  const models::text::ByteTokenizer tokenizer;
  const std::string other = files().path("writer"), out = files().path("written");
  fs::create_directory(other);
  models::save_model(*byte_model("258", 8), &tokenizer, other);
  const json report = json::parse(json_of(files().drawn() + " --compare " + other + " -o " + out));
  std::istringstream lines(slurp(out + "/drawn-words.jsonl"));
  std::string line;
  std::getline(lines, line);
  BOOST_TEST(json::parse(line)["braid_eval"]["seed"] == "0");
  double right = 0;
  while (std::getline(lines, line)) {
    const json item = json::parse(line);
    BOOST_REQUIRE(item["texts"].size() == 3u);
    BOOST_REQUIRE(item["answers"].size() == 3u);
    double own = 0;
    for (size_t i = 0; i < 3; ++i) {
      const std::string text = item["texts"][i], answer = item["answers"][i];
      BOOST_TEST(text.find('e') == std::string::npos);
      BOOST_TEST(text.find(answer) != std::string::npos);
      own += std::ranges::any_of(answer, [](char c) { return c == 'a' || c == 'A'; });  // "runs" needs luck
    }
    BOOST_TEST(item["contains"] == own / 3, boost::test_tools::tolerance(1e-12));
    right += own / 3;
  }
  const double value = report["results"][0]["metrics"]["contains"]["value"];
  BOOST_TEST(value > 0);
  BOOST_TEST(value == right / 12, boost::test_tools::tolerance(1e-12));
  const json& difference = report["compare"]["differences"][0];
  BOOST_TEST(difference["result"] == "contains");
  BOOST_TEST(difference["first"] == value);
  BOOST_TEST(fs::exists(out + "/compare/drawn-words.jsonl"));
}

// A model folder that says itself that it has longer sequences is what --extrapolate stands for.
BOOST_AUTO_TEST_CASE(sequences_beyond_the_models_own) {
  const std::string task = "text:" + files().path("text.txt") + " --max-length 90", longer = files().path("longer");
  fs::copy(files().model, longer);
  std::string config = slurp(longer + "/config.json");
  const size_t at = config.find("64", config.find("\"block_size\""));
  BOOST_TEST_REQUIRE(at != std::string::npos);
  write(longer + "/config.json", config.replace(at, 2, "90"));
  const std::string file = files().path("longer.json");
  BOOST_TEST(run("eval " + longer + " " + task + " --json " + file).code == 0);
  const json expected = json::parse(slurp(file))["results"][0],
             found = json::parse(json_of(task + " --extrapolate"))["results"][0];
  BOOST_TEST(found["metrics"] == expected["metrics"]);
  BOOST_TEST(found["settings"]["extrapolated_from"] == "64");
  BOOST_TEST(!expected["settings"].contains("extrapolated_from"));
  const Outcome shown = run("eval " + files().model + " " + task + " --extrapolate");
  BOOST_TEST(
      shown.output.find(": sequences of up to 90 tokens, its own have up to 64 (--extrapolate)\n") != std::string::npos,
      shown.output);
  BOOST_TEST(shown.output.find(": extrapolated, sequences of up to 90 tokens by a model of 64\n") != std::string::npos,
             shown.output);
  const Outcome within =
      run("eval " + files().model + " " + "text:" + files().path("text.txt") + " --max-length 32 --extrapolate");
  BOOST_TEST(within.output.find("extrapolated") == std::string::npos, within.output);
}

// Bytes that a tokenizer cannot take are said, by eval and where prompts are read.
BOOST_AUTO_TEST_CASE(text_that_is_no_utf8) {
  const models::text::ByteTokenizer tokenizer;
  const std::string other = files().path("300"), pairs = files().path("pairs"), latin = files().path("latin.txt");
  fs::create_directory(other);
  models::save_model(*byte_model("300"), &tokenizer, other);
  BOOST_TEST(run("prepare " + files().path("text.txt") + " --train-bpe 300 -o " + pairs).code == 0);
  write(latin, "caf\xE9 au lait");
  for (const std::string& command :
       {"eval " + other + " text:" + latin, "dump " + other + " --text " + latin + " -o " + files().path("dump")}) {
    const Outcome bytes = run(command);
    BOOST_TEST((bytes.code == 0 && !has(bytes, "is no UTF-8")), bytes.output);
    if (command.starts_with("dump")) save_tokenizer(*models::text::load_tokenizer(pairs), other);
    const Outcome text = run(command + (command.starts_with("eval") ? " --tokenizer " + pairs : ""));
    BOOST_TEST((text.code == 0 && has(text, "note: ") && has(text, "is no UTF-8: bytes that are not")), text.output);
  }
}

// At growing intervals, as training: each of few items.
BOOST_AUTO_TEST_CASE(progress_in_a_file) {
  const Outcome shown = run("eval " + files().model + " choices:" + files().path("choices.jsonl"));
  for (const char* line : {"  1/12", "  2/12", "  9/12", "  12/12"})
    BOOST_TEST(shown.output.find(line) != std::string::npos, line << " in\n" << shown.output);
}

// SIGKILL and SIGINT at whatever moment they come.
BOOST_AUTO_TEST_CASE(signals_leave_results_that_are_gone_on_with) {
  std::string texts;
  for (int i = 0; i < 400; ++i)
    texts += "{\"text\": \"a longer line of text with the number " + std::to_string(i) + "\"}\n";
  write(files().path("many.jsonl"), texts);
  const std::string task = "lambada:" + files().path("many.jsonl"), out = files().path("signals");
  const std::string whole = json_of(task);
  for (const int signal : {SIGKILL, SIGINT}) {
    Process process({"eval", files().model, task, "-o", out, "--batch", "1"});
    for (std::string line; line.find("/400") == std::string::npos;) {
      line = process.line();
      BOOST_REQUIRE(!line.empty());
    }
    process.signal(signal);
    const Outcome result = process.wait();
    if (signal == SIGINT && result.code != 0) {  // it may have been done already
      BOOST_TEST(result.code == 75, result.output);
      BOOST_TEST(result.output.find("stopped by SIGINT; the same command resumes") != std::string::npos, result.output);
    }
  }
  BOOST_TEST(json_of(task + " -o " + out) == whole);
}

// Once as a TASK, once with what it measures.
BOOST_AUTO_TEST_CASE(help_names_the_tasks_without_a_file) {
  const std::string help = run("eval --help").output;
  const std::string list = help.substr(help.find("NAME:FILE, "), 200);
  for (const char* task : {"in-context", "in-context-seen", "recall"})
    BOOST_TEST(list.find(task) != std::string::npos, task << " in\n" << help);
  BOOST_TEST(help.find("\nin-context without a file: ") != std::string::npos, help);
  BOOST_TEST(help.find("\nrecall: ") != std::string::npos, help);
}

BOOST_AUTO_TEST_CASE(bad_use) {
  const auto rejects = [](const std::string& arguments, int code, const std::string& words) {
    const Outcome result = run("eval " + arguments);
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, "no '" << words << "' in " << result.output);
  };
  const std::string m = files().model + " ", choices = "choices:" + files().path("choices.jsonl");
  rejects(files().bare + " " + choices, 3, "no tokenizer.json in ");
  rejects(m + "arcc:f.jsonl", 2, "unknown task 'arcc': expected one of in-context, in-context-seen, recall, arc");
  rejects(m + "arcc:f.jsonl", 2, "did you mean 'arc'?");
  rejects(m + "arc", 2, "bad task 'arc': expected NAME:FILE");
  rejects(m + "in-context-seen:x", 2, "in-context-seen has no file; give in-context:FILE");
  rejects(m + "recall:x", 2, "recall has no file; give in-context:FILE");
  rejects(m + "choices:nowhere.jsonl", 3, "nowhere.jsonl");
  rejects(m + "lambada:" + files().path("choices.jsonl"), 3,
          "bad line 1 in " + files().path("choices.jsonl") +
              ": expected the field 'text', found the fields choices, context, gold");
  rejects(m + choices + " --shots 12", 2, "too few examples for --shots: expected 12 items besides line 1 of ");
  rejects(m + "in-context --shots 1", 2, "--shots has no effect on in-context");
  rejects(m + choices + " --shots-from f", 2, "--shots-from has no effect without --shots K");
  rejects(m + choices + " --max-length 65", 2, "bad value for --max-length: expected at most 64");
  rejects(m + choices + " --max-length 65", 2, "; --extrapolate evaluates beyond it where positions are rotary");
  rejects(m + choices + " --extrapolate", 2, "--extrapolate has no effect without --max-length N");
  rejects(m + files().drawn() + " --max-length 12", 2, "bad value for max_tokens of task ");
  rejects(m + choices + " --max-length 4", 3, "expected a continuation of at most 3 tokens");
  rejects(m + "text:" + files().path("text.txt") + " --stride 64", 2, "bad value for --stride: expected at most 63");
  rejects(m + choices + " " + choices + " -o " + files().path("twice"), 2,
          "two tasks have the file choices-choices.jsonl");
  rejects(m + choices + " --json /nowhere/x.json", 4, "/nowhere");
  rejects(m + choices + " --json " + files().path("choices.jsonl"), 2, "--json would replace ");
  rejects(m + choices + " --json -", 2, "--json - is no name");
  write(files().path("empty.jsonl"), "");
  rejects(m + "text:" + files().path("empty.jsonl"), 3, "found an empty file");
  write(files().path("own.toml"), "kind = \"last_word\"\ncontext = \"{text}\"\ntarget = \"{word}\"\n");
  rejects(m + files().path("own.toml") + ":" + files().path("words.jsonl"), 3, "expected the field 'word'");
}

BOOST_AUTO_TEST_SUITE_END()
