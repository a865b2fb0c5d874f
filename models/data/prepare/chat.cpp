#include "braid/models/data/prepare/chat.h"

#include "braid/models/data/prepare/conversation.h"
#include "braid/models/data/prepare/folder_template.h"
#include "braid/models/data/prepare/template/json_text.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

constexpr std::string_view kRole = "{role}", kContent = "{content}";
constexpr const char *kAssistantRole = "assistant", *kSystemRole = "system", *kToolRole = "tool";
constexpr struct { std::string_view begin, end; } kCallMarks = {"<tool_call>\n", "\n</tool_call>"};

struct NamedTemplate {
  const char *name, *begin, *turn;
};
constexpr NamedTemplate kTemplates[] = {
    {"simple", "", "{role}: {content}\n"},
    {"chatml", "", "<|im_start|>{role}\n{content}<|im_end|>\n"},
    {"llama-3", "<|begin_of_text|>", "<|start_header_id|>{role}<|end_header_id|>\n\n{content}<|eot_id|>"},
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
  void add_turns(const std::vector<ChatTurn>& turns, const ChatJson& tools, const ChatTemplate& chat, bool open) {
    const TurnParts parts(chat);
    const bool described = !tools.is_null() && !tools.empty();
    add_template(chat.begin);
    if (described && (turns.empty() || turns[0].role != kSystemRole)) {
      add_template(replaced(parts.before, kRole, kSystemRole));
      add_tools(tools);
      add_template(replaced(parts.end, kRole, kSystemRole) + parts.between);
    }
    for (const ChatTurn& turn : turns) {
      const bool counted = turn.role == kAssistantRole && turn.learnt, result = turn.role == kToolRole;
      add_template(replaced(parts.before, kRole, turn.role));
      if (result) add_template("<tool_response>\n");
      add_content(turn.content, counted);
      if (result) add_template("\n</tool_response>");
      if (described && turn.role == kSystemRole && &turn == &turns.front()) {
        if (!turn.content.empty()) add_template("\n\n");
        add_tools(tools);
      }
      if (turn.calls.is_array()) add_calls(turn, counted);
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
  void add_tools(const ChatJson& tools) {
    add_template("Functions that you can call, each as a JSON object:\n<tools>\n");
    for (const ChatJson& tool : tools) {
      add_content(json_text(tool), false);
      add_template("\n");
    }
    add_template(str("</tools>\nTo call one, write the JSON object of its name and arguments:\n", kCallMarks.begin,
                     "{\"name\": \"NAME\", \"arguments\": {\"ARGUMENT\": VALUE}}", kCallMarks.end));
  }
  void add_calls(const ChatTurn& turn, bool counted) {
    bool first = turn.content.empty();
    for (const ChatJson& call : turn.calls) {
      add_template((std::exchange(first, false) ? "" : "\n") + std::string(kCallMarks.begin));
      flush(counted);
      const ChatJson& function = call.at("function");
      add_content(json_text({{"name", function.at("name")}, {"arguments", function.at("arguments")}}), counted);
      add_template(std::string(kCallMarks.end));
      flush(counted);
    }
  }
  void append(const std::vector<int32_t>& tokens, bool counted) {
    sample_.tokens.insert(sample_.tokens.end(), tokens.begin(), tokens.end());
    sample_.counted.resize(sample_.tokens.size(), counted);
  }

  const Tokenizer& tokenizer_;
  std::string held_;
  Sample sample_;
};

Sample write_turns(const Conversation& talk, const ChatTemplate& chat, const Tokenizer& tokenizer) {
  SampleWriter sample(tokenizer);
  sample.add_turns(talk.turns, talk.tools, chat, false);
  return sample.finish(talk.turns.back().role == kAssistantRole && talk.turns.back().learnt);
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

ChatTemplate ChatTemplate::of_folder(const Tokenizer& tokenizer) {
  ChatTemplate chat{.begin = "", .turn = "", .folder = FolderTemplate::of(tokenizer)};
  check(chat.folder != nullptr, ErrorKind::input,
        "the tokenizer's folder has no chat template: expected chat_template.jinja, or chat_template in "
        "tokenizer_config.json");
  return chat;
}

std::vector<int32_t> chat_prompt(const std::vector<ChatTurn>& turns, const ChatJson& tools, const ChatTemplate& chat,
                                 const Tokenizer& tokenizer) {
  if (chat.folder) return chat.folder->prompt(turns, tools, tokenizer);
  SampleWriter sample(tokenizer);
  sample.add_turns(turns, tools, chat, true);
  sample.add_template(replaced(TurnParts(chat).before, kRole, kAssistantRole));
  return sample.take_tokens();
}

CallMarks call_marks(const ChatTemplate& chat) {
  return chat.folder ? chat.folder->call_marks()
                     : CallMarks{std::string(kCallMarks.begin), std::string(kCallMarks.end)};
}

std::string answer_end(const ChatTemplate& chat) {
  return chat.folder ? chat.folder->answer_end() : replaced(TurnParts(chat).end, kRole, kAssistantRole);
}

static Sample written(const Conversation& found, const std::string& place, const SampleFormat& format,
                      const Tokenizer& tokenizer) {
  if (format.chat && format.chat->folder) return format.chat->folder->sample(found, place, tokenizer);
  if (format.chat) return write_turns(found, *format.chat, tokenizer);
  SampleWriter sample(tokenizer);
  sample.add_content(found.turns[0].content, false);
  sample.add_content(found.turns[1].content, true);
  return sample.finish(true);
}

Sample make_sample(std::string_view line, const std::string& place, const SampleFormat& format,
                   const Tokenizer& tokenizer) {
  if (!format.preferences) return written(read_conversation(line, place, format), place, format, tokenizer);
  const auto [chosen, rejected] = read_preference(line, place, format);
  Sample pair = written(chosen, place, format, tokenizer);
  const Sample second = written(rejected, place, format, tokenizer);
  pair.second = std::ssize(pair.tokens);
  pair.tokens.insert(pair.tokens.end(), second.tokens.begin(), second.tokens.end());
  pair.counted.insert(pair.counted.end(), second.counted.begin(), second.counted.end());
  return pair;
}

}  // namespace braid::models::text
