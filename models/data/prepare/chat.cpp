#include "braid/models/data/prepare/chat.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::text {
namespace {

using nlohmann::json;

constexpr std::string_view kRole = "{role}", kContent = "{content}";
constexpr const char *kMessages = "messages", *kConversations = "conversations", *kAssistant = "assistant";

// The names of ShareGPT's speakers, and what they are here.
constexpr std::pair<const char*, const char*> kSpeakers[] = {
    {"human", "user"},       {"user", "user"},      {"gpt", kAssistant}, {"assistant", kAssistant},
    {"chatgpt", kAssistant}, {"model", kAssistant}, {"system", "system"}};

struct NamedTemplate {
  const char *name, *begin, *turn;
};
constexpr NamedTemplate kTemplates[] = {
    {"simple", "", "{role}: {content}\n"},
    {"chatml", "", "<|im_start|>{role}\n{content}<|im_end|>\n"},
    {"llama-3", "<|begin_of_text|>", "<|start_header_id|>{role}<|end_header_id|>\n\n{content}<|eot_id|>"},
};

// Everything that can be wrong with a line.
struct Line {
  const std::string& place;

  [[noreturn]] void bad(const std::string& expected, const std::string& found) const {
    fail(ErrorKind::input,
         "cannot use " + place + ": expected " + expected + ", found " + found + "; correct the line or remove it");
  }
  std::string text(const json& object, const std::string& field) const {
    if (!object.contains(field)) bad("a field \"" + field + "\" with text", "none");
    const json& value = object.at(field);
    if (!value.is_string()) bad("text in the field \"" + field + "\"", value.type_name());
    return value.get<std::string>();
  }
  // A list of messages of either form.
  void messages(const json& object, const char* field, std::vector<ChatTurn>& turns) const {
    const json& list = object.at(field);
    if (!list.is_array()) bad(str("a list in the field \"", field, "\""), list.type_name());
    if (list.empty()) bad("at least one message", "none");
    for (const json& message : list)
      turns.push_back(message.is_object() && message.contains("from") ? speech(message) : weighted(message));
  }
  ChatTurn weighted(const json& message) const {
    ChatTurn turn = read_message(message, [&](const std::string& name, const std::string& expected, const json& found) {
      if (name.empty()) bad("messages that are objects with role and content", found.type_name());
      bad(expected + " in the field \"" + name + "\" of a message",
          found.is_string() ? "'" + detail::preview(found.get<std::string>()) + "'" : found.type_name());
    });
    const json weight = message.value("weight", json(1));
    if (weight != 0 && weight != 1 && !weight.is_null()) bad("0 or 1 in the field \"weight\"", weight.dump());
    turn.learnt = weight != 0;
    return turn;
  }
  ChatTurn speech(const json& message) const {
    const std::string speaker = text(message, "from");
    for (const auto& [name, role] : kSpeakers)
      if (speaker == name) return {role, text(message, "value")};
    bad("human, gpt or system in the field \"from\"", "'" + detail::preview(speaker) + "'");
  }
  // What stands beside a conversation for the system.
  std::vector<ChatTurn> system(const json& object) const {
    const json beside = object.value("system", json());
    if (!beside.is_string() || beside == "") return {};
    return {{"system", beside.get<std::string>()}};
  }
  std::vector<ChatTurn> question(const json& object) const {
    std::vector<ChatTurn> turns = system(object);
    std::string asked = text(object, "instruction");
    const json input = object.value("input", json());
    if (!input.is_null() && input != "") asked += "\n" + text(object, "input");
    turns.push_back({"user", asked});
    turns.push_back({kAssistant, text(object, "output")});
    return turns;
  }
  [[noreturn]] void no_form(const json& object) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back("\"" + detail::preview(name) + "\"");
    bad("\"messages\" (role, content), \"conversations\" (from, value), \"prompt\" with \"answer\" or \"completion\", "
        "or "
        "\"instruction\" with \"output\"",
        names.empty() ? "no field" : "the fields " + detail::join(names, ", "));
  }
};

std::string replaced(std::string text, std::string_view name, const std::string& value) {
  if (const size_t at = text.find(name); at != std::string::npos) text.replace(at, name.size(), value);
  return text;
}

// A turn with its three parts of the template. The end of a turn belongs to what is said. Line ends behind an end of
// other characters belong to the next turn.
struct TurnParts {
  explicit TurnParts(const ChatTemplate& chat) {
    const size_t at = chat.turn.find(kContent);
    const std::string after = chat.turn.substr(at + kContent.size());
    const size_t last = after.find_last_not_of('\n'), length = last == std::string::npos ? after.size() : last + 1;
    before = chat.turn.substr(0, at), end = after.substr(0, length), between = after.substr(length);
  }
  std::string before, end, between;
};

// Appends parts of text to a sample. Parts of the template are held until something else follows, so that the end of
// one turn and the beginning of the next are encoded as one text.
class SampleWriter {
 public:
  explicit SampleWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add_template(const std::string& text) { held_ += text; }
  void add_content(const std::string& text, bool counted) {
    flush(false);
    append(tokenizer_.encode(text), counted);
  }
  // open: another turn follows.
  void add_turns(const std::vector<ChatTurn>& turns, const ChatTemplate& chat, bool open) {
    const TurnParts parts(chat);
    add_template(chat.begin);
    for (const ChatTurn& turn : turns) {
      const bool counted = turn.role == kAssistant && turn.learnt;
      add_template(replaced(parts.before, kRole, turn.role));
      add_content(turn.content, counted);
      add_template(replaced(parts.end, kRole, turn.role));
      if (counted) flush(true);
      if (open || &turn != &turns.back()) add_template(parts.between);
    }
  }
  std::vector<int32_t> take_tokens() {
    flush(false);
    return std::move(sample_.tokens);
  }
  void flush(bool counted) { append(tokenizer_.encode(std::exchange(held_, ""), true), counted); }
  Sample finish(bool counted) {
    flush(false);
    const int32_t end = document_end(tokenizer_, "every sample ends with");
    if (sample_.tokens.empty() || sample_.tokens.back() != end) append({end}, counted);
    return std::move(sample_);
  }

 private:
  void append(const std::vector<int32_t>& tokens, bool counted) {
    sample_.tokens.insert(sample_.tokens.end(), tokens.begin(), tokens.end());
    sample_.counted.resize(sample_.tokens.size(), counted);
  }

  const Tokenizer& tokenizer_;
  std::string held_;
  Sample sample_;
};

Sample write_turns(const std::vector<ChatTurn>& turns, const ChatTemplate& chat, const Tokenizer& tokenizer) {
  SampleWriter sample(tokenizer);
  sample.add_turns(turns, chat, false);
  return sample.finish(turns.back().role == kAssistant && turns.back().learnt);
}

}  // namespace

std::vector<std::string> chat_template_names() {
  std::vector<std::string> names;
  for (const NamedTemplate& t : kTemplates) names.push_back(t.name);
  return names;
}

std::string chat_template_for(const Tokenizer& tokenizer) {
  const auto has = [&](const char* text) {
    const std::vector<int32_t> tokens = tokenizer.encode(text, true);
    return tokens.size() == 1 && tokenizer.is_special(tokens[0]);
  };
  return has("<|im_start|>") ? "chatml" : has("<|start_header_id|>") ? "llama-3" : "simple";
}

ChatTemplate ChatTemplate::parse(const std::string& name_or_text) {
  for (const NamedTemplate& t : kTemplates)
    if (name_or_text == t.name) return {t.begin, t.turn};
  const auto times = [&](std::string_view name) {
    int64_t n = 0;
    for (size_t at = 0; (at = name_or_text.find(name, at)) != std::string::npos; at += name.size()) ++n;
    return n;
  };
  check(detail::valid_utf8(name_or_text) && times(kContent) == 1 && times(kRole) <= 1, ErrorKind::setting, [&] {
    return "bad chat template: expected " + detail::join(chat_template_names(), ", ") +
           ", or the text of a turn with {content} and, before or behind it, {role}, found '" +
           detail::preview(name_or_text) + "'";
  });
  return {"", name_or_text};
}

std::vector<int32_t> chat_prompt(const std::vector<ChatTurn>& turns, const ChatTemplate& chat,
                                 const Tokenizer& tokenizer) {
  SampleWriter sample(tokenizer);
  sample.add_turns(turns, chat, true);
  sample.add_template(replaced(TurnParts(chat).before, kRole, kAssistant));
  return sample.take_tokens();
}

ChatTurn read_message(const json& message, const BadMessage& bad) {
  if (!message.is_object()) bad("", "an object with role and content", message);
  const json role = message.value("role", json());
  if (!role.is_string() && !role.is_null()) bad("role", "a string", role);
  const std::string name = role.is_string() ? role.get<std::string>() : "";
  if (name.empty() || name.size() > 64 || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos)
    bad("role", "letters a to z, such as user, assistant or system", role);
  for (const char* calls : {"tool_calls", "function_call"})
    if (const json made = message.value(calls, json()); !made.is_null() && !(made.is_array() && made.empty()))
      bad(calls, "no call of a tool, which no template here can write", made);
  const json content = message.value("content", json());
  if (content.is_null()) return {name, ""};
  if (content.is_string()) return {name, content.get<std::string>()};
  const char* expected = "a string or a list of {\"type\": \"text\", \"text\": ...}";
  if (!content.is_array()) bad("content", expected, content);
  std::string text;
  for (const json& part : content) {
    const char* type = part.is_object() && part.value("type", json()) == "refusal" ? "refusal" : "text";
    const bool is_text =
        part.is_object() && part.value("type", json()) == type && part.contains(type) && part.at(type).is_string();
    if (!is_text) bad("content", expected, part);
    text += part.at(type).get_ref<const std::string&>();
  }
  return {name, text};
}

std::string answer_end(const ChatTemplate& chat) { return replaced(TurnParts(chat).end, kRole, kAssistant); }

Sample make_sample(std::string_view line, const std::string& place, const SampleFormat& format,
                   const Tokenizer& tokenizer) {
  const Line in{place};
  const json object = io::parse_json(line, place);
  if (!object.is_object()) in.bad("a JSON object", object.type_name());
  const char* talk = object.contains(kMessages)        ? kMessages
                     : object.contains(kConversations) ? kConversations
                                                       : nullptr;
  const bool asked = object.contains(format.prompt_field),
             alpaca = object.contains("instruction") && object.contains("output");
  if (!format.chat && (talk || (!asked && alpaca)))
    in.bad("a prompt and an answer",
           str(talk ? talk : "instruction and output", ", which need a chat template (`chat`)"));
  const bool completion =
      format.answer_or_completion && !object.contains(format.answer_field) && object.contains("completion");
  const std::string& answer_field = completion ? "completion" : format.answer_field;
  std::vector<ChatTurn> turns;
  if (talk) {
    if (talk == kConversations) turns = in.system(object);
    in.messages(object, talk, turns);
  } else if (format.chat && asked && object.contains(answer_field) && object.at(format.prompt_field).is_array()) {
    for (const std::string& field : {format.prompt_field, answer_field}) in.messages(object, field.c_str(), turns);
  } else if (format.chat && !asked && alpaca) {
    turns = in.question(object);
  } else if (format.chat && !asked && format.prompt_field == SampleFormat().prompt_field) {
    in.no_form(object);
  }
  if (!turns.empty()) return write_turns(turns, *format.chat, tokenizer);
  const std::string prompt = in.text(object, format.prompt_field), answer = in.text(object, answer_field);
  if (format.chat) return write_turns({{"user", prompt}, {kAssistant, answer}}, *format.chat, tokenizer);
  SampleWriter sample(tokenizer);
  sample.add_content(prompt, false);
  sample.add_content(answer, true);
  return sample.finish(true);
}

std::string file_with_chat_template(const std::string& folder) {
  namespace fs = std::filesystem;
  if (const fs::path file = fs::path(folder) / "chat_template.jinja"; io::exists(file)) return file.string();
  const fs::path file = fs::path(folder) / "tokenizer_config.json";
  if (!io::exists(file)) return "";
  try {
    const json config = io::read_json_file(file.string(), 64 << 20);
    return config.is_object() && config.contains("chat_template") ? file.string() : "";
  } catch (const io::SystemError&) {
    throw;
  } catch (const Error&) {  // a file that nothing here needs
    return "";
  }
}

}  // namespace braid::models::text
