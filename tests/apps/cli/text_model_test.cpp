// The chat template of a model's folder in `braid serve`, `braid chat` and `braid prepare`, as the real program.
#include "apps/cli/text_model.h"

#include <boost/test/unit_test.hpp>

#include "braid/models/data/text/manifest.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/registry.h"
#include "tests/apps/serve/test_server.h"
#include "tests/apps/support.h"
#include "tests/models/data/tokenizers/fixtures.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(chat_template_of_a_folder)

namespace {

// A model whose tokenizer knows <|im_start|>, and whose folder has a chat template of its own.
struct Folder {
  Scratch scratch;
  std::string model = (scratch / "tiny").string();

  explicit Folder(const std::string& chat_template) {
    std::filesystem::create_directories(scratch / "tokens");
    test::write(scratch / "tokens" / "tokenizer.json", golden_text("qwen2/tokenizer.json"));
    test::write(scratch / "tokens" / "tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
    if (!chat_template.empty()) test::write(scratch / "tokens" / "chat_template.jinja", chat_template);
    std::filesystem::create_directories(model);
    models::save_model(*byte_model("1203"), models::text::load_tokenizer((scratch / "tokens").string()).get(), model);
  }
};
const char* kTemplate =
    "{% if messages|length > 4 %}{{ raise_exception('too many messages') }}{% endif %}\n"
    "{% for m in messages %}[{{ m.role }}] {{ m.content }} [/]{% endfor %}{% if add_generation_prompt %}[assistant]{% "
    "endif "
    "%}";

// The first lines of the server, its port, and its process.
struct Served {
  explicit Served(const std::string& model, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"serve", model, "--port", "0", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    process = std::make_unique<Process>(arguments);
    for (std::string line; !(line = process->line()).empty();) {
      lines += line;
      const size_t at = line.find("serving http://127.0.0.1:");
      if (at == std::string::npos) continue;
      port = std::stoi(line.substr(at + 25));
      break;
    }
  }
  std::unique_ptr<Process> process;
  std::string lines;
  int port = 0;
};

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(serve_renders_it_and_names_it) {
  const Folder folder(kTemplate);
  const auto tokens = [&](const Served& server, const std::string& content) {
    const Answer answer = Client(server.port).post("/v1/chat/completions", R"({"max_tokens": 1, "messages": [
        {"role": "user", "content": ")" + content + "\"}]}");
    BOOST_TEST(answer.status == 200, answer.body);
    return answer.json()["usage"]["prompt_tokens"].get<size_t>();
  };
  const auto tokenizer = models::text::load_tokenizer(folder.model);
  {
    const Served server(folder.model);
    BOOST_TEST(has(server.lines, ", chat template of chat_template.jinja\n"), server.lines);
    BOOST_TEST(tokens(server, "Hi") == tokenizer->encode("[user] Hi [/][assistant]").size());
    const std::string message = R"({"role": "user", "content": "x"})";
    const Answer refused = Client(server.port)
                               .post("/v1/chat/completions", R"({"messages": [)" + message + "," + message + "," +
                                                                 message + "," + message + "," + message + "]}");
    BOOST_TEST(refused.status == 400);
    BOOST_TEST(has(refused.body, "chat template of chat_template.jinja, line 1: the template says: too many messages"),
               refused.body);
  }
  const Served chatml(folder.model, {"--chat", "chatml"});
  BOOST_TEST(has(chatml.lines, ", chat template chatml\n"), chatml.lines);
  BOOST_TEST(tokens(chatml, "Hi") ==
             tokenizer->encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", true).size());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_rendered_ends_the_command) {
  const Folder folder("a\n{% for m in messages recursive %}{% endfor %}");
  for (const char* command : {"serve --port 0 ", "chat "}) {
    const Outcome result = run(command + folder.model + " < /dev/null");
    BOOST_TEST(result.code == 3, result.output);
    BOOST_TEST(has(result.output,
                   "chat template of chat_template.jinja, line 2: a recursive loop is not supported; give "
                   "--chat NAME, one of simple, chatml, llama-3, or the text of a turn"),
               result.output);
  }
  BOOST_TEST(run("chat " + folder.model + " --chat simple < /dev/null").code == 0);
  const Folder none("");
  BOOST_TEST(run("chat " + none.model + " < /dev/null").code == 0);
  const Outcome missing = run("chat " + none.model + " --chat folder < /dev/null");
  BOOST_TEST(missing.code == 3);
  BOOST_TEST(has(missing.output, "the tokenizer's folder has no chat template"), missing.output);
}

BOOST_AUTO_TEST_CASE(chat_talks_with_it) {
  const Folder folder(kTemplate);
  const auto talk = [&](const std::string& flags) {
    const Outcome result = run("chat " + folder.model + " -n 1 --stats " + flags, "echo Hi |");
    BOOST_TEST(result.code == 0, result.output);
    return result.output;
  };
  const auto tokenizer = models::text::load_tokenizer(folder.model);
  const size_t own = tokenizer->encode("[user] Hi [/][assistant]").size();
  BOOST_TEST(has(talk(""), "prompt of " + std::to_string(own) + ","));
  BOOST_TEST(has(talk("--chat folder"), "prompt of " + std::to_string(own) + ","));
  // A line that the template rejects ends nothing.
  const Outcome many = run("chat " + folder.model + " -n 1", "printf 'a\\nb\\nc\\n/history\\n' |");
  BOOST_TEST(many.code == 0, many.output);
  BOOST_TEST(has(many.output, "line 1: the template says: too many messages"), many.output);
  BOOST_TEST(has(many.output, "user: b\n"), many.output);
  BOOST_TEST(!has(many.output, "user: c\n"), many.output);
  const size_t simple =
      tokenizer->encode("user: ").size() + tokenizer->encode("Hi").size() + tokenizer->encode("\nassistant: ").size();
  BOOST_TEST(has(talk("--chat simple"), "prompt of " + std::to_string(simple) + ","));
}

BOOST_AUTO_TEST_CASE(prepare_counts_its_answers) {
  const Folder folder(kTemplate);
  const std::string lines = (folder.scratch / "chats.jsonl").string(), data = (folder.scratch / "data").string();
  test::write(lines, R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]})"
                     "\n");
  const std::string command = "prepare " + lines + " --tokenizer " + folder.model + " --val-fraction 0 -o " + data;
  const Outcome made = run(command + " --chat folder");
  BOOST_TEST(made.code == 0, made.output);
  BOOST_TEST(!has(made.output, "note: the tokenizer's folder"), made.output);
  const models::text::Manifest manifest = models::text::read_manifest(data);
  BOOST_TEST(manifest.samples->folder == kTemplate);
  const auto tokenizer = models::text::load_tokenizer(folder.model);
  const std::string text = "[user] Hi [/][assistant] Yes [/]";
  BOOST_TEST(manifest.train.tokens == std::ssize(tokenizer->encode(text)) + 1);
  BOOST_TEST(has(run("inspect " + data).output, "by the chat template of the tokenizer's folder\n"));
  // The template is part of the data's identity, and stays with its tokenizer.
  BOOST_TEST(models::text::chat_template_file(*models::text::load_tokenizer(data)) == "chat_template.jinja");
  const Outcome other = run(command + " --chat simple --replace");
  BOOST_TEST(has(other.output,
                 "note: the tokenizer's folder has a chat template of its own (chat_template.jinja), which "
                 "`chat` = folder writes; the turns were written as the chat template says"),
             other.output);
  BOOST_TEST(models::text::read_manifest(data).fingerprint != manifest.fingerprint);
  BOOST_TEST(models::text::read_manifest(data).samples->folder == "");
  // Lines that the template rejects, and no template.
  const std::string one = R"({"role": "user", "content": "x"}, )";
  test::write(lines, R"({"messages": [)" + one + one + one + one + R"({"role": "assistant", "content": "5"}]})" + "\n");
  const Outcome refused = run("prepare " + lines + " --chat folder --tokenizer " + folder.model + " -o " + data + "-2");
  BOOST_TEST(refused.code == 3, refused.output);
  BOOST_TEST(has(refused.output, "line 1: the template says: too many messages"), refused.output);
  const Outcome none = run("prepare " + lines + " --chat folder -o " + data + "-3");
  BOOST_TEST(none.code == 3, none.output);
  BOOST_TEST(has(none.output, "the tokenizer's folder has no chat template: expected chat_template.jinja"),
             none.output);
}

// A file without a tokenizer names them too.
BOOST_AUTO_TEST_CASE(ends_of_a_gguf_file) {
  const Scratch scratch;
  const std::filesystem::path path = scratch / "model.gguf";
  models::save_gguf(*models::configure_model("llama-tiny", {{"n_layer", "1"}})->make({1, 0}), nullptr, "f16", path,
                    {7, 9});
  BOOST_TEST(apps::ends_of_text(models::load_model(path), 100, nullptr) == std::vector<int32_t>({7, 9}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
