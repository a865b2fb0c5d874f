// braid generate --prompts, --ids and --tokenizer as the real program.
#include <boost/test/unit_test.hpp>

#include "braid/models/folders/pretrained.h"
#include "braid/tensor/base/strings.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(generate_prompts)

namespace fs = std::filesystem;

namespace {

// A model of bytes with random weights, with a tokenizer and without.
struct Models {
  Scratch scratch;
  std::string model = (scratch / "model").string(), bare = (scratch / "bare").string();
  Models() {
    const auto made = byte_model();
    const models::text::ByteTokenizer tokenizer;
    fs::create_directories(model), fs::create_directories(bare);
    models::save_model(*made, &tokenizer, model);
    models::save_model(*made, nullptr, bare);
  }
};
const Models& all() {
  static const Models instance;
  return instance;
}

}  // namespace

BOOST_AUTO_TEST_CASE(replies_do_not_depend_on_the_batch) {
  const fs::path folder = all().scratch.path;
  write(folder / "p.txt", "One\n\nA longer prompt\nx\nThree more words\n");
  write(folder / "p.jsonl",
        "{\"prompt\": \"One\"}\n{\"id\": 7, \"prompt\": \"A longer prompt\"}\n{\"prompt\": \"x\"}\n"
        "{\"prompt\": \"Three more words\"}\n");
  for (const char* how : {"-t 0", "-t 1.2 --seed 3 --stop a"}) {
    const std::string command = "generate " + all().model + " -n 20 --ignore-eos " + how + " --prompts ";
    const Outcome one = run(command + (folder / "p.txt").string() + " --batch 1");
    BOOST_TEST(one.code == 0, one.output);
    BOOST_TEST(detail::split(one.output, '\n').size() == 5u);
    BOOST_TEST(one.output.starts_with("{\"prompt\":\"One\",\"text\":"), one.output);
    for (const char* rows : {"2", "4", "100"}) {
      const Outcome many = run(command + (folder / "p.jsonl").string() + " -o " + (folder / "out.jsonl").string() +
                               " --stats --batch " + rows);
      BOOST_TEST(many.code == 0, many.output);
      BOOST_TEST(many.output.find("4 replies in ") != std::string::npos, many.output);
      BOOST_TEST(many.output.find(" tokens/s") != std::string::npos, many.output);
      BOOST_TEST(slurp(folder / "out.jsonl") == one.output);
    }
  }
  // Each is what --prompt gives with its seed.
  const Outcome single = run("generate " + all().model +
                             " -n 20 --ignore-eos -t 1.2 --seed 4 --stop a --no-prompt "
                             "--prompt 'A longer prompt'");
  const Outcome listed = run("generate " + all().model + " -n 20 --ignore-eos -t 1.2 --seed 3 --stop a --prompts " +
                             (folder / "p.txt").string());
  const std::string line = detail::split(listed.output, '\n').at(1);
  BOOST_TEST((line.find("\"reason\":\"stop\"") != std::string::npos ||
              line.find("\"reason\":\"length\"") != std::string::npos));
  BOOST_TEST(single.code == 0, single.output);
}

BOOST_AUTO_TEST_CASE(flags_beside_ids_count_or_are_refused) {
  const std::string ids = " -n 5 -t 1.5 --ignore-eos --no-prompt --ids 65,66", bare = "generate " + all().bare + ids;
  const Outcome first = run(bare + " --seed 3"), second = run(bare + " --seed 4");
  BOOST_TEST(first.code == 0, first.output);
  BOOST_TEST(run(bare + " --seed 3 --count 2").output == first.output + second.output);
  for (const std::string& command : {bare, "generate " + all().model + ids}) {
    const Outcome result = run(command + " --template 'Q {prompt}'");
    BOOST_TEST(result.code == 2, result.output);
    BOOST_TEST(result.output.find("--template stands around a text") != std::string::npos, result.output);
  }
  const Outcome stop = run(bare + " --stop x");
  BOOST_TEST(stop.code == 2, stop.output);
  BOOST_TEST(stop.output.find("--stop is a text, and the model has no tokenizer") != std::string::npos, stop.output);
}

BOOST_AUTO_TEST_CASE(ids_and_other_tokenizers) {
  const Outcome text = run("generate " + all().model + " -n 5 -t 0 --ignore-eos --prompt AB");
  const Outcome ids = run("generate " + all().model + " -n 5 -t 0 --ignore-eos --ids 65,66");
  BOOST_TEST(ids.output == text.output);
  BOOST_TEST(run("generate " + all().bare + " -n 5 -t 0 --ignore-eos --tokenizer " + all().model + " -p AB").output ==
             text.output);
  const Outcome bare = run("generate " + all().bare + " -n 3 -t 0 --ids '65, 66'");
  BOOST_TEST(bare.code == 0, bare.output);
  BOOST_TEST(bare.output.starts_with("65,66,"), bare.output);
  BOOST_TEST(detail::split(bare.output, ',').size() == 5u);
}

// Any token of eos_token_id ends a text, with a tokenizer and without, in one text, a batch and a conversation.
BOOST_AUTO_TEST_CASE(every_end_of_text_of_the_folder_ends_it) {
  const std::string flags = " -n 3 -t 0 --no-prompt --ids 65,66";
  const std::string first = detail::split(run("generate " + all().bare + flags + " --ignore-eos").output, ',').at(0);
  for (const std::string& folder : {all().model, all().bare}) {
    const fs::path copy = all().scratch / (fs::path(folder).filename().string() + "-ends");
    fs::copy(folder, copy);
    write(copy / "generation_config.json", "{\"eos_token_id\": [300, 256, " + first + "]}");
    const bool bare = folder == all().bare;
    BOOST_TEST(run("generate " + copy.string() + flags).output == "\n");
    BOOST_TEST(run("generate " + copy.string() + flags + " --ignore-eos").output.size() > 1u);
    if (bare) continue;
    write(all().scratch / "ab.txt", "AB\nAB\n");
    const Outcome batch =
        run("generate " + copy.string() + " -n 3 -t 0 --prompts " + (all().scratch / "ab.txt").string());
    BOOST_TEST(batch.output.find("\"tokens\":0,\"reason\":\"end_of_text\"") != std::string::npos, batch.output);
    BOOST_TEST(run("generate " + copy.string() + " -n 3 -t 0 --no-prompt -i", "printf 'AB\\n' |").output == "\n");
  }
}

BOOST_AUTO_TEST_CASE(bad_flags_and_files) {
  const auto rejects = [](const std::string& flags, int code, const std::string& words) {
    const Outcome result = run("generate " + all().model + " " + flags);
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, "no '" << words << "' in " << result.output);
  };
  const std::string file = (all().scratch / "bad.jsonl").string();
  write(file, "{\"prompt\": \"a\"}\n{\"text\": \"b\"}\n");
  rejects("--prompts " + file, 3, "bad line 2 in ");
  const auto replies = [&](const std::string& lines) {
    write(all().scratch / "lines.txt", lines);
    return run("generate " + all().model + " -n 4 --prompts " + (all().scratch / "lines.txt").string()).output;
  };
  const std::string windows = replies("ab\r\ncd\r\n");
  BOOST_TEST(windows == replies("ab\ncd\n"));
  BOOST_TEST(windows.find("\"prompt\":\"cd\"") != std::string::npos, windows);
  write(file, "\n\n");
  rejects("--prompts " + file, 3, "no prompt in ");
  write(file, "{\"prompt\": \"a\"}\n{\"prompt\": \"" + std::string(80, 'x') + "\"}\n");
  rejects("--prompts " + file, 2, "prompt 2 has 80 tokens, the model's longest sequence is 64");
  rejects("--prompts " + file + " -o " + file, 2, "--out would replace " + file);
  rejects("--prompts " + file + " -o -", 2, "--out - is no name");
  rejects("--prompts " + file + " -o /no/such/folder/x", 4, "/no/such/folder/x");  // before any reply is made
  rejects("--prompts " + file + " -p x", 2, "expected one of --prompt, --prompts and --ids");
  rejects("--prompts " + file + " -i", 2, "exclude each other");
  rejects("--prompts " + file + " --count 2", 2, "--count is for one prompt");
  rejects("-p x --batch 3", 2, "--batch is for many prompts");
  rejects("-p x --top-p 1.1", 2, "bad value for --top-p");
  rejects("--ids 1,258", 2, "expected token ids from 0 to 257, found '258'");
  rejects("--ids ''", 2, "--ids: expected token ids");
  const Outcome bare = run("generate " + all().bare + " -p x");
  BOOST_TEST(bare.code == 3);
  BOOST_TEST(bare.output.find("give --tokenizer FOLDER, or --ids") != std::string::npos, bare.output);
}

BOOST_AUTO_TEST_SUITE_END()
