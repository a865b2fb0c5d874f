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
constexpr const char *kMessages = "messages", *kAssistant = "assistant";

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
  std::vector<ChatTurn> messages(const json& list) const {
    if (!list.is_array()) bad("a list in the field \"messages\"", list.type_name());
    if (list.empty()) bad("at least one message", "none");
    std::vector<ChatTurn> turns;
    for (const json& message : list) {
      if (!message.is_object()) bad("messages that are objects with role and content", message.type_name());
      if (message.contains("tool_calls") && !message.at("tool_calls").is_null())
        bad("messages of text", "tool_calls, which no template here can write");
      turns.push_back({text(message, "role"), text(message, "content")});
      const std::string& role = turns.back().role;
      if (role.empty() || role.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos)
        bad("a role of the letters a to z, such as user or assistant", "'" + detail::preview(role) + "'");
    }
    return turns;
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
      const bool counted = turn.role == kAssistant;
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
  return sample.finish(turns.back().role == kAssistant);
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

std::string answer_end(const ChatTemplate& chat) { return replaced(TurnParts(chat).end, kRole, kAssistant); }

Sample make_sample(std::string_view line, const std::string& place, const SampleFormat& format,
                   const Tokenizer& tokenizer) {
  const Line in{place};
  const json object = io::parse_json(line, place);
  if (!object.is_object()) in.bad("a JSON object", object.type_name());
  if (object.contains(kMessages)) {
    if (!format.chat) in.bad("a prompt and an answer", "messages, which need a chat template (`chat`)");
    return write_turns(in.messages(object.at(kMessages)), *format.chat, tokenizer);
  }
  const bool completion =
      format.answer_or_completion && !object.contains(format.answer_field) && object.contains("completion");
  const std::string prompt = in.text(object, format.prompt_field),
                    answer = in.text(object, completion ? "completion" : format.answer_field);
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
