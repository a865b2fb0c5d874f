#include "braid/models/data/prepare/chat.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"
using namespace braid;
using namespace braid::models::text;

BOOST_AUTO_TEST_SUITE(chat_samples)

namespace {

// The text of a sample with what is counted in brackets, <|endoftext|> as $.
std::string shown(const Sample& sample) {
  const ByteTokenizer tokenizer;
  std::string text;
  for (size_t i = 0; i < sample.tokens.size(); ++i) {
    const bool before = i > 0 && sample.counted[i - 1];
    if (sample.counted[i] != before) text += before ? ']' : '[';
    text += sample.tokens[i] == tokenizer.eos_id() ? "$" : std::string(tokenizer.token_bytes(sample.tokens[i]));
  }
  return text + (sample.counted.back() ? "]" : "");
}

std::string sample(const std::string& line, const SampleFormat& format = {}) {
  return shown(make_sample(line, "data.jsonl at line 3", format, ByteTokenizer()));
}

SampleFormat chat(const std::string& name) { return SampleFormat{.chat = ChatTemplate::parse(name)}; }

const std::string kTalk =
    R"({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"},
        {"role": "assistant", "content": "So long"}]})";

}  // namespace

BOOST_AUTO_TEST_CASE(answers_are_counted_and_prompts_are_not) {
  BOOST_TEST(sample(R"({"prompt": "2+2=", "answer": "4"})") == "2+2=[4$]");
  BOOST_TEST(sample(R"({"completion": " four", "prompt": "2+2=", "id": [1, {"a": null}]})") == "2+2=[ four$]");
  BOOST_TEST(sample(R"({"prompt": "", "answer": ""})") == "[$]");
  BOOST_TEST(sample(R"({"prompt": "<|endoftext|>", "answer": "é"})") == "<|endoftext|>[é$]");
  SampleFormat fields;
  fields.prompt_field = "q", fields.answer_field = "a", fields.answer_or_completion = false;
  BOOST_TEST(sample(R"({"q": "x", "a": "y"})", fields) == "x[y$]");
  BRAID_CHECK_FAILS(sample(R"({"q": "x", "completion": "y"})", fields), ErrorKind::input,
                    "cannot use data.jsonl at line 3: expected a field \"a\" with text, found none");
}

BOOST_AUTO_TEST_CASE(what_the_assistant_says_is_counted_with_its_end) {
  BOOST_TEST(sample(kTalk, chat("simple")) ==
             "system: Be kind.\nuser: Hi\nassistant: [Hello\n]user: Bye\nassistant: [So long\n$]");
  BOOST_TEST(sample(kTalk, chat("chatml")) ==
             "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
             "[Hello<|im_end|>]\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n[So long<|im_end|>$]");
  BOOST_TEST(sample(R"({"prompt": "A", "answer": "B"})", chat("llama-3")) ==
             "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nA<|eot_id|>"
             "<|start_header_id|>assistant<|end_header_id|>\n\n[B<|eot_id|>$]");
  // Text of a special is the special in the template alone.
  BOOST_TEST(sample(R"({"prompt": "<|endoftext|>", "answer": "B"})", chat("{role}>{content}<|endoftext|>")) ==
             "user><|endoftext|>$assistant>[B$]");
  BOOST_TEST(sample(R"({"messages": [{"role": "user", "content": "x"}]})", chat("[{content}]")) == "[x]$");
  BRAID_CHECK_FAILS(chat("no place"), ErrorKind::setting, "expected simple, chatml, llama-3, or the text of a turn");
  BRAID_CHECK_FAILS(chat("{content}{content}"), ErrorKind::setting, "bad chat template");
  BRAID_CHECK_FAILS(chat("\xff{content}"), ErrorKind::setting, "bad chat template");
}

// The forms in which clients and data sets write conversations.
BOOST_AUTO_TEST_CASE(messages_of_other_programs) {
  const auto simple = [](const std::string& line) { return sample(line, chat("simple")); };
  BOOST_TEST(simple(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "H"},
      {"type": "text", "text": "i"}], "name": "x"}, {"role": "assistant", "content": "Hello", "tool_calls": [],
      "function_call": null, "refusal": null, "logprob": NaN}]})") == "user: Hi\nassistant: [Hello\n$]");
  BOOST_TEST(simple(R"({"messages": [{"role": "assistant", "content": null, "tool_calls": null}]})") ==
             "assistant: [\n$]");
  BOOST_TEST(simple(R"({"messages": [{"role": "assistant", "content": "a", "weight": 0}, {"role": "assistant",
      "content": "b", "weight": 1}], "system": [1]})") == "assistant: a\nassistant: [b\n$]");
  const std::string talk = "user: Hi\nassistant: [Hello\n$]";
  BOOST_TEST(simple(R"({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]})") ==
             talk);
  BOOST_TEST(
      simple(R"({"conversations": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]})") ==
      talk);
  BOOST_TEST(simple(R"({"system": "Be kind.", "conversations": [{"from": "human", "value": "Hi"},
      {"from": "gpt", "value": "Hello"}]})") == "system: Be kind.\n" + talk);
  BOOST_TEST(simple(R"({"prompt": [{"role": "user", "content": "Hi"}],
      "completion": [{"role": "assistant", "content": "Hello"}]})") == talk);
  BOOST_TEST(simple(R"({"instruction": "Hi", "input": "", "output": "Hello", "system": ""})") == talk);
  BOOST_TEST(simple(R"({"instruction": "Add", "input": "2+2", "output": "4"})") == "user: Add\n2+2\nassistant: [4\n$]");
}

// Tools stand in the system's turn, calls of the assistant are targets, results are not.
BOOST_AUTO_TEST_CASE(tools_and_calls_in_the_built_in_templates) {
  const std::string tools = R"([{"type": "function", "function": {"name": "add", "b": 1.0, "a": "é"}}])";
  const std::string block =
      "Functions that you can call, each as a JSON object:\n<tools>\n"
      "{\"type\": \"function\", \"function\": {\"name\": \"add\", \"b\": 1.0, \"a\": \"é\"}}\n</tools>\n"
      "To call one, write the JSON object of its name and arguments:\n"
      "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {\"ARGUMENT\": VALUE}}\n</tool_call>";
  const std::string messages = R"({"role": "user", "content": "2+2?"}, {"role": "assistant", "content": null,
      "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"y\": 2, \"x\": 2}"}}]},
      {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "4"}, {"role": "assistant", "content": "Four"}])";
  const std::string turns =
      "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"
      "[<tool_call>\n{\"name\": \"add\", \"arguments\": {\"y\": 2, \"x\": 2}}\n</tool_call><|im_end|>]\n"
      "<|im_start|>tool\n<tool_response>\n4\n</tool_response><|im_end|>\n<|im_start|>assistant\n[Four<|im_end|>$]";
  BOOST_TEST(sample("{\"tools\": " + tools + ", \"messages\": [" + messages + "}", chat("chatml")) ==
             "<|im_start|>system\n" + block + "<|im_end|>\n" + turns);
  BOOST_TEST(
      sample("{\"tools\": " + tools + R"(, "messages": [{"role": "system", "content": "Be kind."}, )" + messages + "}",
             chat("chatml")) == "<|im_start|>system\nBe kind.\n\n" + block + "<|im_end|>\n" + turns);
  // Text before a call, several calls, arguments as an object; tools as text, and none.
  const std::string calls = R"({"role": "assistant", "content": "Well", "tool_calls":
      [{"function": {"name": "f", "arguments": {}}}, {"function": {"name": "g", "arguments": {"z": [1, null]}}}]}])";
  BOOST_TEST(sample(R"({"tools": "[]", "messages": [)" + calls + "}", chat("simple")) ==
             "assistant: [Well\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n"
             "{\"name\": \"g\", \"arguments\": {\"z\": [1, null]}}\n</tool_call>\n$]");
  const CallMarks marks = call_marks(ChatTemplate::parse("chatml"));
  BOOST_TEST(marks.begin == "<tool_call>\n");
  BOOST_TEST(marks.end == "\n</tool_call>");
  const ByteTokenizer tokenizer;
  const std::vector<ChatTurn> asked = {{"user", "x"}};
  BOOST_TEST(tokenizer.decode(chat_prompt(asked, ChatJson::parse(tools), ChatTemplate::parse("simple"), tokenizer)) ==
             "system: " + block + "\nuser: x\nassistant: ");
}

// A model that was trained on a sample sees, when it answers, the tokens that stood before the answer.
BOOST_AUTO_TEST_CASE(a_prompt_is_the_sample_up_to_the_answer) {
  const std::vector<ChatTurn> turns = {{"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Hello"}, {"user", "Bye"}};
  const ByteTokenizer tokenizer;
  for (const char* name : {"simple", "chatml", "llama-3", "{role}>{content}<|endoftext|>", "[{content}]"}) {
    const ChatTemplate chat = ChatTemplate::parse(name);
    SampleFormat format{.chat = chat};
    const Sample whole = make_sample(kTalk, "data.jsonl at line 3", format, tokenizer);
    std::vector<int32_t> rest = chat_prompt(turns, nullptr, chat, tokenizer);
    const std::vector<int32_t> answer = tokenizer.encode("So long"), end = tokenizer.encode(answer_end(chat), true);
    rest.insert(rest.end(), answer.begin(), answer.end());
    rest.insert(rest.end(), end.begin(), end.end());
    if (rest.back() != tokenizer.eos_id()) rest.push_back(tokenizer.eos_id());
    BOOST_TEST(whole.tokens == rest, boost::test_tools::per_element());
  }
  BOOST_TEST(answer_end(ChatTemplate::parse("simple")) == "\n");
  BOOST_TEST(answer_end(ChatTemplate::parse("chatml")) == "<|im_end|>");
  BOOST_TEST(answer_end(ChatTemplate::parse("llama-3")) == "<|eot_id|>");
  BOOST_TEST(answer_end(ChatTemplate::parse("{content}")) == "");
}

BOOST_AUTO_TEST_CASE(bad_lines_are_errors_with_their_place) {
  const auto rejects = [](const std::string& line, const std::string& words) {
    BRAID_CHECK_FAILS(sample(line, chat("simple")), ErrorKind::input, "data.jsonl at line 3", words);
  };
  rejects("[1]", "expected a JSON object, found array");
  rejects("{\"prompt\": ", "data.jsonl");
  rejects(R"({"prompt": "x"})", "a field \"answer\" with text, found none");
  rejects(R"({"prompt": 3, "answer": "x"})", "text in the field \"prompt\", found number");
  rejects(R"({"messages": {}})", "a list in the field \"messages\", found object");
  rejects(R"({"messages": []})", "at least one message, found none");
  rejects(R"({"messages": ["x"]})", "messages that are objects with role and content, found string");
  rejects(R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "a string or a list of {\"type\"");
  rejects(R"({"messages": [{"role": "User 1", "content": ""}]})",
          "letters a to z, such as user, assistant or system in the field \"role\" of a message, found 'User 1'");
  rejects(R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [1]}]})",
          "a list of {\"type\": \"function\", \"function\": {\"name\", \"arguments\"}}, the arguments an object or its "
          "text in the field \"tool_calls\" of a message, found number");
  rejects(R"({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]})",
          "the arguments an object or its text");
  rejects(R"({"messages": [{"role": "user", "tool_calls": [{"function": {"name": "f"}}]}]})",
          "calls of the assistant alone");
  rejects(R"({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]})", "the call in \"tool_calls\"");
  rejects(R"({"messages": [{"role": "tool", "content": "", "tool_call_id": 1}]})", "a string in the field \"tool_call");
  rejects(R"({"messages": [{"role": "user", "content": ""}], "tools": [1]})",
          "a list of objects in the field \"tools\"");
  rejects(R"({"messages": [{"role": "assistant", "content": "", "weight": 2}]})",
          "0 or 1 in the field \"weight\", found 2");
  rejects(R"({"conversations": [{"from": "tool", "value": ""}]})",
          "human, gpt or system in the field \"from\", found 'tool'");
  rejects(R"({"conversations": [{"from": "gpt"}]})", "a field \"value\" with text, found none");
  rejects(R"({"question": "x", "response": "y"})",
          "\"conversations\" (from, value), \"prompt\" with \"answer\" or \"completion\", or \"instruction\" with "
          "\"output\", found the fields \"question\", \"response\"");
  BRAID_CHECK_FAILS(sample(R"({"instruction": "x", "output": "y"})"), ErrorKind::input,
                    "instruction and output, which need a chat template (`chat`)");
  BRAID_CHECK_FAILS(sample(kTalk), ErrorKind::input, "messages, which need a chat template (`chat`)");
}

BOOST_AUTO_TEST_SUITE_END()
