// A conversation: turns, answers, settings and commands, with a tiny random model over bytes.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "apps/chat/commands.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/inference/generate.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/apps/support.h"
#include "tests/support/places.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(chat_conversation)

using Kind = ChatLine::Kind;

namespace {

struct Talk {
  std::unique_ptr<models::LanguageModel> model = models::as_language_model(byte_model());
  models::text::ByteTokenizer tokenizer;
  ChatSession conversation;
  std::string printed;

  explicit Talk(ChatOptions options = {})
      : conversation(*model, tokenizer, [&] {
          if (options.chat.turn.empty()) options.chat = models::text::ChatTemplate::parse("simple");
          if (options.max_tokens == 512) options.max_tokens = 6;
          options.sampling.vocabulary = tokenizer.vocab_size();
          return options;
        }()) {}
  Answer say(const std::string& text) {
    printed.clear();
    return conversation.say(text, [this](std::string_view piece) { printed += piece; });
  }
  std::string roles() const {
    std::string text;
    for (const models::text::ChatTurn& turn : conversation.turns()) text += turn.role[0];
    return text;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_answer_continues_the_turns_so_far) {
  Talk talk;
  const Answer first = talk.say("hello"), second = talk.say("more");
  BOOST_TEST(talk.roles() == "uaua");
  BOOST_TEST(talk.printed == second.text);
  BOOST_TEST(talk.conversation.turns()[1].content == first.text);
  // The same by the library, from the text that the template makes.
  models::SamplingOptions options{.seed = 1, .vocabulary = talk.tokenizer.vocab_size()};
  const std::string before = "user: hello\nassistant: " + first.text + "\nuser: more\nassistant: ";
  const std::vector<int32_t> prompt = talk.tokenizer.encode(before);
  const models::Generated made = models::generate(*talk.model, prompt, 6, options);
  std::string expected = talk.tokenizer.decode(made.tokens);
  if (const size_t end = expected.find('\n'); end != std::string::npos) expected.resize(end);  // the end of a turn
  BOOST_TEST(detail::replace_invalid_utf8(expected) == second.text);
  BOOST_TEST(second.prompt_tokens == std::ssize(prompt));
}

BOOST_AUTO_TEST_CASE(again_undo_and_reset) {
  Talk talk({.system = "be brief"});
  BOOST_TEST(talk.roles() == "s");
  BRAID_CHECK_FAILS(talk.conversation.again([](std::string_view) {}), ErrorKind::setting,
                    "there is no answer to draw anew");
  BRAID_CHECK_FAILS(talk.conversation.undo(), ErrorKind::setting, "nothing to take back");
  bool changed = false;
  std::string last = talk.say("a").text;
  for (int i = 0; i < 5; ++i) {
    const std::string text = talk.conversation.again([](std::string_view) {}).text;
    BOOST_TEST(talk.roles() == "sua");
    changed = changed || text != last;
    last = text;
  }
  BOOST_TEST(changed);
  talk.say("b");
  talk.conversation.undo();
  BOOST_TEST(talk.roles() == "sua");
  BOOST_TEST(talk.conversation.turns().back().content == last);
  talk.conversation.reset();
  BOOST_TEST(talk.roles() == "s");
  talk.conversation.system("");
  BOOST_TEST(talk.roles() == "");
}

BOOST_AUTO_TEST_CASE(the_oldest_turns_give_way) {
  Talk talk({.system = "stay"});
  int64_t dropped = 0;
  const int64_t longest = talk.model->max_sequence_length();
  for (int i = 0; i < 40; ++i) {
    const Answer answer = talk.say("a message of some length");
    BOOST_TEST(answer.prompt_tokens < longest);
    dropped = std::max(dropped, answer.dropped);
  }
  BOOST_TEST(dropped > 0);
  BOOST_TEST(dropped % 2 == 0);
  const std::string roles = talk.roles();
  BRAID_CHECK_FAILS(talk.say(std::string(static_cast<size_t>(longest), 'x')), ErrorKind::setting,
                    "this is too long for the model");
  BOOST_TEST(talk.roles() == roles);
}

BOOST_AUTO_TEST_CASE(an_answer_can_be_stopped) {
  Talk talk;
  talk.conversation.set("tokens", "50");
  int pieces = 0;
  const Answer answer = talk.conversation.say(
      "go", [&](std::string_view) { ++pieces; }, [&] { return pieces >= 2; });
  BOOST_TEST((answer.reason == models::StopReason::caller || answer.tokens < 50));
  BOOST_TEST(answer.tokens <= 50);
  BOOST_TEST(talk.roles() == "ua");
}

BOOST_AUTO_TEST_CASE(settings) {
  Talk talk;
  ChatSession& c = talk.conversation;
  c.set("temperature", "0");
  const std::string likeliest = talk.say("x").text;
  BOOST_TEST(c.again([](std::string_view) {}).text == likeliest);  // no draw, whatever the seed
  c.set("temperature", "1"), c.set("top-p", "0");
  BOOST_TEST(c.again([](std::string_view) {}).text == likeliest);
  BRAID_CHECK_FAILS(c.set("temperatur", "1"), ErrorKind::setting, "did you mean 'temperature'");
  for (const auto& [name, value] : std::map<std::string, std::string>{{"temperature", "-1"},
                                                                      {"top-p", "1.1"},
                                                                      {"top-k", "1.5"},
                                                                      {"min-p", "2"},
                                                                      {"tokens", "0"},
                                                                      {"repetition-penalty", "x"}})
    BRAID_CHECK_FAILS(c.set(name, value), ErrorKind::setting, "bad value for " + name);
}

BOOST_AUTO_TEST_CASE(commands) {
  Talk talk;
  ChatSession& c = talk.conversation;
  const Scratch scratch;
  BOOST_TEST(take_line("//a", c).words == "/a");
  BOOST_TEST((take_line("text", c).kind == Kind::text && take_line("/quit", c).kind == Kind::quit));
  BOOST_TEST((take_line("/again", c).kind == Kind::again));
  BOOST_TEST(take_line("/history", c).words == "nothing was said yet\n");
  BOOST_TEST(take_line("/set top-k 5", c).words == "top-k = 5\n");
  BOOST_TEST(take_line("/set", c).words.find("top-k = 5") != std::string::npos);
  take_line("/system be kind", c);
  talk.say("hi");
  BOOST_TEST(take_line("/history", c).words.starts_with("system: be kind\nuser: hi\nassistant: "));
  const std::string save = "/save " + (scratch / "talk.jsonl").string();
  take_line(save, c);
  const nlohmann::json saved = nlohmann::json::parse(slurp(scratch / "talk.jsonl"));
  BOOST_TEST(saved["messages"].size() == 3U);
  BOOST_TEST(saved["messages"][2]["content"].get<std::string>() == c.turns()[2].content);
  BRAID_CHECK_FAILS(take_line("/save /no/such/folder/x", c), ErrorKind::output, "/no/such/folder");
  BOOST_TEST((take_line("/reset", c).kind == Kind::done && talk.roles() == "s"));
  BRAID_CHECK_FAILS(take_line(save, c), ErrorKind::setting, "nothing was said yet");
  talk.say("ho");
  take_line(save, c);  // a second line: the conversation saved before stays
  const std::vector<std::string> lines = detail::split(slurp(scratch / "talk.jsonl"), '\n');
  BOOST_TEST(lines.size() == 3U);  // the last one empty
  BOOST_TEST(nlohmann::json::parse(lines[0]) == saved);
  BOOST_TEST(nlohmann::json::parse(lines[1])["messages"][1]["content"].get<std::string>() == "ho");
  c.reset();
  talk.say("caf\xe9");  // of a terminal that does not write UTF-8
  BOOST_TEST(nlohmann::json::parse(c.json())["messages"][1]["content"].get<std::string>() == "caf\uFFFD");
  for (const char* name : {"/help", "/undo", "/set", "/system", "/save", "/reset", "/again", "/history", "/quit"})
    BOOST_TEST(take_line("/help", c).words.find(name) != std::string::npos, name);
  BRAID_CHECK_FAILS(take_line("/rest", c), ErrorKind::setting, "did you mean 'reset'");
  BRAID_CHECK_FAILS(take_line("/reset now", c), ErrorKind::setting, "takes no argument");
  BRAID_CHECK_FAILS(take_line("/save", c), ErrorKind::setting, "needs the name of a file");
}

BOOST_AUTO_TEST_CASE(the_program) {
  const Scratch scratch;
  const std::string tiny = (scratch / "tiny").string();
  std::filesystem::create_directories(tiny);
  const models::text::ByteTokenizer tokenizer;
  models::save_model(*byte_model(), &tokenizer, tiny);
  const std::string lines = (scratch / "lines").string(), file = (scratch / "talk.jsonl").string();
  write(lines, "hello\n/set temperature 0\n/wrong\n\n/again\nmore\n/save " + file + "\n/quit\nnever\n");
  const Outcome talk = run("chat " + tiny + " -n 4 --system 'be brief' --stats < " + lines);
  BOOST_TEST(talk.code == 0, talk.output);
  BOOST_TEST(talk.output.find("temperature = 0\n") != std::string::npos, talk.output);
  BOOST_TEST(talk.output.find("there is no command /wrong") != std::string::npos, talk.output);
  BOOST_TEST(talk.output.find(" of them from the cache\n") != std::string::npos, talk.output);
  BOOST_TEST(nlohmann::json::parse(slurp(file))["messages"].size() == 5U);
  const Outcome wrong = run("chat " + tiny + " --chat nothing");
  BOOST_TEST(wrong.code == 2);
  BOOST_TEST(wrong.output.find("bad chat template") != std::string::npos, wrong.output);
  const Outcome none = run("chat " + source_dir() + "/tests/golden/model_dcformer_lg < " + lines);
  BOOST_TEST(none.code == 3);
  BOOST_TEST(none.output.find("give --tokenizer FOLDER") != std::string::npos, none.output);
}

BOOST_AUTO_TEST_SUITE_END()
