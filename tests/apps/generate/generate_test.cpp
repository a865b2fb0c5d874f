// braid generate as the real program.
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "braid/models/folders/pretrained.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(generate_command)

namespace fs = std::filesystem;

namespace {

// A model of bytes with random weights, sequences of 64; its likeliest bytes are printable, but those of a wild one.
std::string write_model(const fs::path& folder, const std::string& vocabulary, double output_weight = 0,
                        bool wild = false) {
  const auto model = byte_model(vocabulary);
  for (nn::NamedTensor& p : nn::parameters(*model)) {
    if (wild || p.name != "output.weight") continue;
    Tensor rows = p.value.detach();
    if (output_weight != 0) rows.fill(output_weight);
    if (vocabulary != "258") continue;
    rows.sliced(0, 0, 32).fill(output_weight);
    rows.sliced(0, 127, 258).fill(output_weight);
  }
  fs::create_directories(folder);
  const models::text::ByteTokenizer tokenizer;
  models::save_model(*model, &tokenizer, folder);
  return folder.string();
}

struct Models {
  Scratch scratch;
  std::string bytes = write_model(scratch / "bytes", "258"), padded = write_model(scratch / "padded", "2000"),
              small = write_model(scratch / "small", "64"), infinite = write_model(scratch / "infinite", "258", 3e38),
              wild = write_model(scratch / "wild", "258", 0, true);
};
const Models& all() {
  static const Models instance;
  return instance;
}

void fails(const Outcome& result, int code, const std::string& output) {
  BOOST_TEST(result.code == code);
  BOOST_TEST(result.output == output);
}

}  // namespace

BOOST_AUTO_TEST_CASE(strict_bits_of_f32_alone) {
  const std::string model = all().bytes, text = (all().scratch / "text.txt").string();
  write(text, "Some words to be scored.");
  for (const std::string& command : {"generate " + model + " -p a -n 3", "eval " + model + " text:" + text,
                                     "chat " + model + " < " + text, "serve " + model + " --port 0"}) {
    const std::string name = command.substr(0, command.find(' ')), more = command.substr(name.size());
    fails(run(name + " --strict --dtype f64" + more), 2,
          "error: strict bits: expected weights of f32 or bf16, found f64\n");
    if (name != "serve") BOOST_TEST(run(name + " --strict" + more).code == 0, command);
  }
}

// A folder opens and cannot be read.
BOOST_AUTO_TEST_CASE(standard_input_that_cannot_be_read_is_an_error) {
  for (const char* command :
       {"generate MODEL -p - -n 1", "generate MODEL -i -n 1", "chat MODEL -n 1", "dump MODEL -p -"}) {
    std::string line = command;
    line.replace(line.find("MODEL"), 5, all().bytes);
    const Outcome result = run(line + " < /");
    BOOST_TEST(result.code == 3, command);
    BOOST_TEST(result.output.find("error: cannot read standard input: Is a directory") != std::string::npos,
               command << ": " << result.output);
  }
}

// Most ids of this model have no token.
BOOST_AUTO_TEST_CASE(ids_that_the_tokenizer_does_not_have_are_never_drawn) {
  for (const char* how : {"-t 0", "-t 1", "-t 5 --top-k 1500"}) {
    const Outcome result = run("generate " + all().padded + " -p foo -n 40 --ignore-eos " + how);
    BOOST_TEST(result.code == 0, result.output);
  }
}

BOOST_AUTO_TEST_CASE(weights_of_8_and_4_bits_are_for_inference) {
  for (const std::string bits : {"8", "4"}) {
    const std::string type = " --dtype int" + bits;
    const Outcome result = run("generate " + all().bytes + " -p foo -n 5 -t 0 --stats" + type);
    BOOST_TEST(result.code == 0);
    BOOST_TEST(result.output.find(" s (int" + bits + ", ") != std::string::npos, result.output);
    const std::string out = type + " -o " + (all().scratch / "quantised").string();
    for (const std::string& command :
         {"dump " + all().bytes + " -p foo" + out, "convert " + all().bytes + out, "train train.dtype=int" + bits}) {
      const Outcome rejected = run(command);
      BOOST_TEST(rejected.code == 2);
      BOOST_TEST(rejected.output.find(bits + "-bit weights are for inference on the CPU: braid generate, chat, serve, "
                                             "eval and bench decode") != std::string::npos,
                 rejected.output);
    }
  }
}

BOOST_AUTO_TEST_CASE(logits_that_are_not_finite_end_with_5) {
  for (const char* how : {"-t 0", "-t 1"}) {
    const Outcome result = run("generate " + all().infinite + " -p foo -n 5 " + how);  // not even the prompt
    BOOST_TEST(result.code == 5);
    BOOST_TEST(result.output.starts_with("error: no token can be drawn for position 3: "), result.output);
    BOOST_TEST(result.output.find("compute in a wider type (f32, f64), or use an earlier checkpoint") !=
               std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_prompt_that_does_not_fit_is_an_error_before_any_output) {
  fails(run("generate " + all().small + " -p 'a long word'"), 3,
        "error: the tokenizer has 258 ids, the model 64: token 0 of the prompt has id 97; use the tokenizer that the "
        "model was trained with\n");
  fails(run("generate " + all().bytes + " -p " + std::string(65, 'x')), 2,
        "error: the prompt has 65 tokens, the model's longest sequence is 64\n");
  fails(run("generate " + all().bytes + " -i -p " + std::string(65, 'x') + " < /dev/null"), 2,
        "error: the prompt has 65 tokens, the model's longest sequence is 64\n");
}

BOOST_AUTO_TEST_CASE(a_prompt_is_printed_with_its_nul_bytes) {
  const Outcome result = run("generate " + all().bytes + " -p - -n 1 -t 0", "printf 'a\\0bc' |");
  BOOST_TEST(result.code == 0);
  BOOST_TEST((result.output.starts_with(std::string("a\0bc", 4))));
  const Outcome escaped = run("generate " + all().bytes + " -e -p 'a\\0bc' -n 1 -t 0");
  BOOST_TEST((escaped.output == result.output));
  BOOST_TEST(run("generate " + all().bytes + " -p 'a\\n' -n 1 -t 0").output.starts_with("a\\n"));
}

// A file gets the bytes as they are, a terminal none that would command it.
BOOST_AUTO_TEST_CASE(control_characters_are_escaped_on_a_terminal) {
  const std::string arguments =
      "generate " + all().wild + " --prompt x --no-prompt -n 60 -t 5 --seed 3 --ignore-eos --threads 1";
  const auto control = [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 127; };
  const Outcome file = run(arguments);
  BOOST_TEST(file.code == 0, file.output);
  BOOST_TEST(std::ranges::any_of(file.output, control));
  int terminal = -1, its_end = -1;
  if (::openpty(&terminal, &its_end, nullptr, nullptr, nullptr) != 0) {
    BOOST_WARN_MESSAGE(false, "skipped: this system gives no pseudo-terminal");
    return;
  }
  const Outcome shown =
      run(arguments, "exec >/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(its_end) + ";");
  BOOST_TEST(shown.code == 0, shown.output);
  std::string text(65536, ' ');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(terminal, text.data(), text.size()))));
  ::close(terminal), ::close(its_end);
  BOOST_TEST(text.find("\\x") != std::string::npos, text);
  BOOST_TEST(std::ranges::none_of(text, control));
}

BOOST_AUTO_TEST_CASE(a_template_stands_around_the_prompt) {
  const std::string same = run("generate " + all().bytes + " -n 8 -t 0 -p '<x>\n'").output;
  BOOST_TEST(run("generate " + all().bytes + " -n 8 -t 0 -e --template '<{prompt}>\\n' -p x").output == same);
  write(all().scratch / "template", "<{prompt}>\n\n");
  BOOST_TEST(
      run("generate " + all().bytes + " -n 8 -t 0 -p x --template " + (all().scratch / "template").string()).output ==
      same);
  BOOST_TEST(run("generate " + all().bytes + " -p x --template nothing").code == 2);
}

// Each line continues the text so far: the same as one prompt of everything before.
BOOST_AUTO_TEST_CASE(a_conversation_keeps_the_text_so_far) {
  const std::string greedy = "generate " + all().bytes + " -t 0 -n 4 ";
  const Outcome talk = run(greedy + "-i", "printf 'ab\\ncd\\n\\n' |");
  BOOST_TEST(talk.code == 0, talk.output);
  std::string text = "ab", replies;
  for (const char* next : {"cd", "", ""}) {
    write(all().scratch / "text", text);
    const std::string longer = run(greedy + "-p - < " + (all().scratch / "text").string()).output;
    BOOST_REQUIRE_MESSAGE(longer.size() == text.size() + 5, longer);
    replies += longer.substr(text.size());
    text = longer.substr(0, longer.size() - 1) + next;
  }
  BOOST_TEST(talk.output == replies);
  BOOST_TEST(run(greedy + "-i -p ab", "printf 'cd\\n' |").output == run(greedy + "--no-prompt -p abcd").output);
}

BOOST_AUTO_TEST_CASE(a_conversation_drops_its_oldest_tokens) {
  const Outcome talk = run("generate " + all().bytes + " -i -t 0 -n 20",
                           "printf '" + std::string(40, 'x') + "\\n" + std::string(30, 'y') + "\\n" +
                               std::string(65, 'z') + "\\nend\\n" + std::string(40, 'x') + "\\n' |");
  BOOST_TEST(talk.code == 0);
  for (const char* note :
       {"note: the model's longest sequence of 64 tokens is reached; the conversation continues from "
        "its last 2 tokens, and so each time\n",
        "note: the line is left out: it has 65 tokens, the model's longest sequence is 64\n",
        "note: stopped at the model's longest sequence of 64 tokens\n"})
    BOOST_TEST(talk.output.find(note) != std::string::npos, talk.output);
  BOOST_TEST(talk.output.find("is reached;") == talk.output.rfind("is reached;"), talk.output);  // said once
  BOOST_TEST(run("generate " + all().bytes + " -i --count 2 < /dev/null").code == 2);
  BOOST_TEST(run("generate " + all().bytes + " -i -p - < /dev/null").code == 2);
}

BOOST_AUTO_TEST_CASE(ids_of_a_model_without_tokenizer_note_its_longest_sequence) {
  const fs::path bare = all().scratch / "bare";
  fs::create_directories(bare);
  models::save_model(*byte_model(), nullptr, bare);
  std::string ids = "97";
  for (int i = 1; i < 62; ++i) ids += ",97";
  const std::string command = "generate " + bare.string() + " --ids " + ids + " -t 0 --ignore-eos -n ";
  const Outcome cut = run(command + "30"), whole = run(command + "2");
  BOOST_TEST((cut.code == 0 && whole.code == 0), cut.output << whole.output);
  const std::string note = "note: stopped at the model's longest sequence of 64 tokens\n";
  BOOST_TEST(has(cut, note), cut.output);
  BOOST_TEST(!has(whole, note), whole.output);
}

BOOST_AUTO_TEST_CASE(statistics_go_to_stderr) {
  const std::string command = "generate " + all().bytes + " -p foo -n 9 -t 0 --count 2 --stats";
  const Outcome result = run(command);
  BOOST_TEST(result.code == 0);
  for (const char* part : {"\nload      ", " parameters in ", "\nprompt    6 tokens in ", "\ndecoding  16 tokens in ",
                           " tokens/s", "\nmemory    at most "})
    BOOST_TEST(result.output.find(part) != std::string::npos, result.output);
  BOOST_TEST(run(command + " 2>/dev/null | cat").output.find("decoding") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
