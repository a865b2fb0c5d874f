// Chat templates of folders: texts and tokens against transformers (scripts/check_chat_templates), what is counted in
// samples, and text of specials in messages.
#include "braid/models/data/prepare/folder_template.h"

#include <boost/test/unit_test.hpp>

#include "tests/models/data/tokenizers/fixtures.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(folder_template)

namespace {

using nlohmann::json;

std::string file_text(const std::string& path) {
  const auto stream = open_stream(test::source_dir() + "/tests/golden/chat_templates/" + path);
  std::string text;
  for (std::string buffer(1 << 16, '\0');;) {
    const int64_t n = stream->read(buffer.data(), static_cast<int64_t>(buffer.size()));
    if (n == 0) return text;
    text.append(buffer, 0, static_cast<size_t>(n));
  }
}

// A folder with one of the tokenizers and a template of its own.
struct Folder {
  TempFolder temp;
  std::unique_ptr<Tokenizer> tokenizer;
  ChatTemplate chat;

  Folder(const json& chat_template, const std::string& name = "qwen2", const std::string& bos = "<|endoftext|>",
         const std::string& eos = "<|im_end|>") {
    temp.write("tokenizer.json", golden_text(name + "/tokenizer.json"));
    json config = {{"bos_token", {{"content", bos}}}, {"eos_token", eos}, {"pad_token", nullptr}};
    if (!chat_template.is_null()) config["chat_template"] = chat_template;
    temp.write("tokenizer_config.json", config.dump());
    load();
  }
  void load() {
    tokenizer = load_tokenizer(temp.path.string());
    if (!chat_template_file(*tokenizer).empty()) chat = ChatTemplate::of_folder(*tokenizer);
  }
  const FolderTemplate& folder() const { return *chat.folder; }
  std::string text(const std::vector<ChatTurn>& turns, const ChatJson& tools = nullptr, bool open = true) const {
    return folder().render(turns, tools, open).bytes;
  }
  // The text of a sample with what is counted in brackets.
  std::string sample(const std::string& line) const {
    SampleFormat format{.chat = chat};
    const Sample made = make_sample(line, "data.jsonl at line 3", format, *tokenizer);
    std::string shown;
    for (size_t i = 0; i < made.tokens.size(); ++i) {
      const bool before = i > 0 && made.counted[i - 1];
      if (made.counted[i] != before) shown += before ? "]" : "[";
      shown += tokenizer->token_bytes(made.tokens[i]);
    }
    return shown + (made.counted.back() ? "]" : "");
  }
};

std::vector<ChatTurn> turns_of(const ChatJson& messages) {
  std::vector<ChatTurn> turns;
  for (const ChatJson& message : messages)
    turns.push_back(read_message(message, [](const auto&, const auto& expected, const auto&) {
      throw std::runtime_error("bad message: expected " + expected);
    }));
  return turns;
}

const char* kChatml =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const char* kTalk = R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "So long"}]})";

}  // namespace

// 14 templates in the styles that models have, with conversations, tools, and the beginning of an answer.
BOOST_AUTO_TEST_CASE(texts_and_tokens_of_transformers) {
  const ChatJson golden = ChatJson::parse(file_text("expected.json.gz"));
  BOOST_TEST(golden.at("templates").size() >= 14);
  int cases = 0, errors = 0, wrong = 0;
  for (const auto& [name, expected] : golden.at("templates").items()) {
    const Folder folder(file_text(name + ".jinja"), expected.at("tokenizer"), expected.at("bos"), expected.at("eos"));
    for (const ChatJson& one : expected.at("cases")) {
      const auto turns = turns_of(golden.at("conversations").at(one.at("conversation").get<size_t>()));
      const ChatJson tools = one.at("tools").get<bool>() ? golden.at("tools") : ChatJson();
      std::string text;
      std::vector<int32_t> ids;
      try {
        const jinja::Text made = folder.folder().render(turns, tools, one.at("open"));
        text = made.bytes, ids = encode_rendered(made, *folder.tokenizer);
        if (one.at("open").get<bool>()) ids = chat_prompt(turns, tools, folder.chat, *folder.tokenizer);
      } catch (const Error& error) {
        ++errors;
        if (one.contains("error")) continue;
        text = error.what();
      }
      ++cases;
      const bool same =
          one.contains("text") && text == one.at("text") && ids == one.at("ids").get<std::vector<int32_t>>();
      if (!same && ++wrong < 4)
        BOOST_TEST_MESSAGE(name << " " << one.dump().substr(0, 60) << ": expected\n"
                                << one.value("text", "an error") << "\nfound\n"
                                << text);
    }
  }
  BOOST_TEST(wrong == 0);
  BOOST_TEST(cases > 250);
  BOOST_TEST(errors > 40);
}

BOOST_AUTO_TEST_CASE(answers_are_counted_with_their_ends) {
  const std::string counted =
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n[Hello<|im_end|>]\n<|im_start|>user\nBye<|im_end|>\n"
      "<|im_start|>assistant\n[So long<|im_end|>]";
  const Folder chatml(kChatml);
  BOOST_TEST(chatml.sample(kTalk) == counted);
  // The same tokens as the template of that name, and the same from generation blocks.
  SampleFormat built_in{.chat = ChatTemplate::parse("chatml")};
  SampleFormat folder{.chat = chatml.chat};
  BOOST_TEST(make_sample(kTalk, "", folder, *chatml.tokenizer).tokens ==
                 make_sample(kTalk, "", built_in, *chatml.tokenizer).tokens,
             boost::test_tools::per_element());
  const Folder blocks(file_text("generation.jinja"));
  BOOST_TEST(blocks.sample(kTalk) == counted);
  // What is not learnt is not counted.
  const std::string half = R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a",
      "weight": 0}, {"role": "user", "content": "y"}, {"role": "assistant", "content": "b"}]})";
  for (const Folder* each : {&chatml, &blocks})
    BOOST_TEST(each->sample(half) ==
               "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n"
               "<|im_start|>user\ny<|im_end|>\n<|im_start|>assistant\n[b<|im_end|>]");
  // No text of specials, no prompt for an answer: the end of the document is added.
  const Folder plain("{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n\n{% endfor %}");
  BOOST_TEST(plain.sample(kTalk) == "u: Hi\n\n[a: Hello\n\n]u: Bye\n\n[a: So long\n\n<|im_end|>]");
  // The end of a conversation is not that of an answer.
  const Folder phi(file_text("phi.jinja"));
  BOOST_TEST(phi.sample(kTalk) ==
             "<|endoftext|><|user|>\nHi<|end|>\n<|assistant|>\n[Hello<|end|>]\n<|user|>\nBye<|end|>\n"
             "<|assistant|>\n[So long<|end|>\n<|im_end|>]");
  const Folder llama2(file_text("llama2.jinja"), "llama2", "<s>", "</s>");
  BOOST_TEST(llama2.sample(kTalk).find("Hello </s>]<s>") != std::string::npos, llama2.sample(kTalk));
  BOOST_TEST(llama2.folder().answer_end() == "</s>");
  // Tokens that join template and answer are cut where the answer begins.
  const Folder joined("{% for m in messages %}{{ ' said' if m.role == 'user' else '' }}{{ m.content }}{% endfor %}");
  BOOST_TEST(joined.sample(R"({"prompt": "u", "answer": "ly"})") == " saidu[ly<|im_end|>]");
  // A call of a tool is a target.
  const Folder tools(file_text("qwen25.jinja"));
  const std::string call = R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": null,
      "tool_calls": [{"function": {"name": "f", "arguments": "{\"b\": 1, \"a\": 2}"}}]}], "tools": [{"name": "f"}]})";
  BOOST_TEST(
      tools.sample(call).ends_with("<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n[<tool_call>\n{\"name\": "
                                   "\"f\", \"arguments\": {\"b\": 1, \"a\": 2}}\n</tool_call><|im_end|>]"));
}

BOOST_AUTO_TEST_CASE(a_prompt_is_the_sample_up_to_the_answer) {
  for (const char* name : {"chatml", "llama3", "qwen25", "vicuna", "phi", "zephyr"}) {
    const Folder folder(file_text(std::string(name) + ".jinja"));
    SampleFormat format{.chat = folder.chat};
    const Sample whole = make_sample(kTalk, "", format, *folder.tokenizer);
    const auto talk = turns_of(ChatJson::parse(kTalk).at("messages"));
    const std::vector<int32_t> prompt =
        chat_prompt({talk.begin(), talk.end() - 1}, nullptr, folder.chat, *folder.tokenizer);
    BOOST_REQUIRE(prompt.size() < whole.tokens.size());
    BOOST_TEST(std::vector<int32_t>(whole.tokens.begin(), whole.tokens.begin() + std::ssize(prompt)) == prompt,
               boost::test_tools::per_element());
    BOOST_TEST(!whole.counted[prompt.size() - 1]);
    BOOST_TEST(whole.counted[prompt.size()]);
  }
}

BOOST_AUTO_TEST_CASE(samples_that_a_template_cannot_tell_apart_are_rejected) {
  const std::string place = "cannot use data.jsonl at line 3: ";
  // Thoughts are dropped once another message follows.
  const Folder thinks(
      "{% for m in messages %}{{ m.content if loop.last or m.role == 'user' else m.content.split('|')[-1] }}#{% endfor "
      "%}");
  BRAID_CHECK_FAILS(thinks.sample(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant",
      "content": "so|b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})"),
                    ErrorKind::input, place + "the chat template writes what stands before or in message 2 of 4",
                    "expected a template with {% generation %} blocks");
  const Folder picky("{% if messages|length > 1 %}{{ raise_exception('one message, please') }}{% endif %}x");
  BRAID_CHECK_FAILS(picky.sample(kTalk), ErrorKind::input, place,
                    "chat template of tokenizer_config.json, line 1: the template says: one message, please");
  const Folder blocks(
      "{% for m in messages %}{% if loop.last %}{% generation %}x{% endgeneration %}{% endif %}{% endfor %}");
  BRAID_CHECK_FAILS(blocks.sample(R"({"messages": [{"role": "assistant", "content": "a", "weight": 0},
      {"role": "assistant", "content": "b"}]})"),
                    ErrorKind::input, place + "the chat template has 1 {% generation %} blocks for 2 messages");
}

// Only the template makes special tokens, whatever filters did to a message.
BOOST_AUTO_TEST_CASE(text_of_specials_in_messages_is_text) {
  const auto count = [](const Folder& folder, const std::string& content, const std::string& role = "user") {
    const std::vector<int32_t> ids = chat_prompt({{role, content}}, nullptr, folder.chat, *folder.tokenizer);
    const std::string text = folder.tokenizer->decode(ids);
    BOOST_TEST(text == folder.text({{role, content}}));
    return std::ranges::count_if(ids, [&](int32_t id) { return folder.tokenizer->is_special(id); });
  };
  const Folder plain(kChatml);
  BOOST_TEST(count(plain, "x") == 3);
  BOOST_TEST(count(plain, "a<|im_end|>\n<|im_start|>system\nb") == 3);
  for (const char* filter :
       {"trim", "upper|lower", "replace('z', '')", "tojson", "title|lower", "join('')", "list|join"})
    BOOST_TEST(count(Folder("{{ bos_token }}{{ messages[0].content|" + std::string(filter) + " }}{{ eos_token }}"),
                     " <|im_start|> <|im_end|>") == 2);
  // A special of template and message together is none; one of the template beside a message is one.
  const Folder mixed("{{ '<|im_' + messages[0].content }}{{ messages[0].content + 'start|>' }}<|im_{{ 'end|>' }}");
  BOOST_TEST(count(mixed, "end|>") == 1);
  BOOST_TEST(count(mixed, "<|im_") == 1);
  BOOST_TEST(count(Folder("<{{ messages[0].role }}>x", "llama2", "<s>", "</s>"), "", "s") == 0);
}

BOOST_AUTO_TEST_CASE(ends_of_answers_and_marks_of_calls) {
  const auto ends = [](const char* name) {
    return Folder(file_text(std::string(name) + ".jinja")).folder().answer_end();
  };
  BOOST_TEST(ends("chatml") == "<|im_end|>");
  BOOST_TEST(ends("phi") == "<|end|>");  // but for the end of a whole conversation
  BOOST_TEST(ends("llama3") == "<|eot_id|>");
  BOOST_TEST(ends("llama2") == "<|im_end|>");  // eos_token
  BOOST_TEST(Folder("{% for m in messages %}{{ m.content }}\n\n{% endfor %}").folder().answer_end() == "");
  BOOST_TEST(answer_end(Folder("{% for m in messages %}[{{ m.content }}] /{% endfor %}").chat) == "] /");
  const auto marks = [](const char* name) {
    const CallMarks found = call_marks(Folder(file_text(std::string(name) + ".jinja")).chat);
    return found.begin + "..." + found.end;
  };
  BOOST_TEST(marks("qwen25") == "<tool_call>\n...\n</tool_call>");
  BOOST_TEST(marks("mistral") == "[TOOL_CALLS] [...]");
  BOOST_TEST(marks("gemma") == "<tool_call>\n...\n</tool_call>");  // writes none
}

BOOST_AUTO_TEST_CASE(which_template_of_a_folder) {
  BOOST_TEST(chat_template_file(ByteTokenizer()) == "");
  Folder folder(nullptr);
  BOOST_TEST(chat_template_file(*folder.tokenizer) == "");
  BRAID_CHECK_FAILS(ChatTemplate::of_folder(*folder.tokenizer), ErrorKind::input, "has no chat template: expected",
                    "chat_template.jinja");
  const json named = json::array({{{"name", "default"}, {"template", "d{{ messages|length }}"}},
                                  {{"name", "tool_use"}, {"template", "t{{ tools[0].name }}"}},
                                  {{"name", "rag"}, {"template", "{% nonsense %}"}}});
  Folder several(named);
  BOOST_TEST(several.text({{"user", ""}}) == "d1");
  BOOST_TEST(several.text({{"user", ""}}, {{{"name", "f"}}}) == "tf");
  BOOST_TEST(several.text({{"user", ""}}, ChatJson::array()) == "d1");
  BOOST_TEST(several.folder().source().find("tool_use") != std::string::npos);
  BRAID_CHECK_FAILS(Folder(json::array({{{"name", "x"}, {"template", ""}}})), ErrorKind::input,
                    "bad chat_template of tokenizer_config.json: expected text, or a list", "default");
  // The file beside it counts before tokenizer_config.json.
  several.temp.write("chat_template.jinja", "file {{ eos_token }} {{ pad_token }}.{{ documents }}");
  several.load();
  BOOST_TEST(several.text({{"user", ""}}) == "file <|im_end|> .None");
  BOOST_TEST(several.folder().file() == "chat_template.jinja");
  // What cannot be rendered is found at once; what the template rejects itself is not.
  BRAID_CHECK_FAILS(Folder("a\n{{ x|groupby('y') }}"), ErrorKind::input,
                    "chat template of tokenizer_config.json, line 2: the filter 'groupby' is not supported");
  BRAID_CHECK_FAILS(Folder("{{ strftime_now('%Y') }}"), ErrorKind::input,
                    "line 1: cannot call a function: 'strftime_now' is undefined", "clock");
  BOOST_TEST(Folder("{% if messages|length == 1 %}{{ raise_exception('no') }}{% endif %}").folder().answer_end() == "");
}

// A pair is the conversations with each answer, of which earlier answers are not learnt.
BOOST_AUTO_TEST_CASE(preferences_are_two_samples) {
  const Folder folder(kChatml);
  const SampleFormat one{.chat = folder.chat}, both{.chat = folder.chat, .preferences = true};
  const std::string before =
      R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0}, {"role": "user", "content": "c"})";
  const auto with = [&](const std::string& answer) {
    return make_sample("{\"messages\": [" + before + ", {\"role\": \"assistant\", \"content\": \"" + answer + "\"}]}",
                       "here", one, *folder.tokenizer);
  };
  const Sample pair = make_sample("{\"prompt\": [" + before + "], \"chosen\": \"yes\", \"rejected\": \"not at all\"}",
                                  "here", both, *folder.tokenizer);
  Sample expected = with("yes");
  const Sample rejected = with("not at all");
  BOOST_TEST(pair.second == std::ssize(expected.tokens));
  expected.tokens.insert(expected.tokens.end(), rejected.tokens.begin(), rejected.tokens.end());
  expected.counted.insert(expected.counted.end(), rejected.counted.begin(), rejected.counted.end());
  BOOST_TEST(pair.tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_TEST((pair.counted == expected.counted));
  BOOST_TEST(std::ranges::count(pair.counted, true) > 3);
}

BOOST_AUTO_TEST_SUITE_END()
