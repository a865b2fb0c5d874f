#include "braid/models/data/prepare/folder_template.h"

#include <algorithm>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models::text {
namespace {

using jinja::Value;

const TokenizerFile* file_of(const std::vector<TokenizerFile>& files, std::string_view name) {
  const auto found = std::ranges::find(files, name, &TokenizerFile::name);
  return found == files.end() ? nullptr : &*found;
}

ChatJson config_of(const std::vector<TokenizerFile>& files, const char* name) {
  const TokenizerFile* file = file_of(files, name);
  const ChatJson config = file ? io::parse_ordered_json(file->contents, name) : ChatJson::object();
  return config.is_object() ? config : ChatJson::object();
}

// A token as text, or as an object with "content".
std::string content_of(const ChatJson& token) {
  const ChatJson text = token.is_object() ? token.value("content", ChatJson()) : token;
  return text.is_string() ? text.get<std::string>() : "";
}

// What transformers gives a template beside the messages: the texts of special tokens.
std::map<std::string, Value> special_tokens(const std::vector<TokenizerFile>& files) {
  std::map<std::string, Value> tokens;
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {  // the second one counts
    const ChatJson config = config_of(files, name);
    for (const auto& [key, token] : config.items())
      if (key.ends_with("_token") && !content_of(token).empty()) tokens[key] = Value::string(content_of(token));
  }
  return tokens;
}

// Templates by name: one text, or a list of {"name", "template"}.
std::map<std::string, std::string> templates_of(const ChatJson& value) {
  if (value.is_string()) return {{"default", value.get<std::string>()}};
  std::map<std::string, std::string> found;
  for (const ChatJson& one : value)
    if (one.is_object() && one.value("name", ChatJson()).is_string() && one.value("template", ChatJson()).is_string())
      found[one.at("name").get<std::string>()] = one.at("template").get<std::string>();
  return found;
}

// As transformers passes it: what a message has not, or as null, is missing.
ChatJson message_of(const ChatTurn& turn) {
  ChatJson message = {{"role", turn.role}};
  if (turn.calls.is_null() || !turn.content.empty()) message["content"] = turn.content;
  if (!turn.calls.is_null()) message["tool_calls"] = turn.calls;
  if (!turn.call_id.empty()) message["tool_call_id"] = turn.call_id;
  if (!turn.name.empty()) message["name"] = turn.name;
  return message;
}

bool of_template(const jinja::Text& text, size_t at) { return (text.marks[at] & jinja::kOfMessage) == 0; }
int generation_at(const jinja::Text& text, size_t at) { return static_cast<unsigned char>(text.marks[at]) >> 1; }

// Where an answer ends that begins at `begin`: line ends of the template behind other characters of it belong to what
// follows.
size_t trimmed_end(const jinja::Text& text, size_t begin, size_t end) {
  size_t at = end;
  while (at > begin && text.bytes[at - 1] == '\n' && of_template(text, at - 1)) --at;
  return at > begin && of_template(text, at - 1) ? at : end;
}

// The text of the template at a position, up to that of a message.
std::string template_run(const jinja::Text& text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && of_template(text, end)) ++end;
  return text.bytes.substr(begin, end - begin);
}

// How many bytes two texts of a template have in common, by whole tokens unless one contains the other.
size_t common_bytes(const std::string& a, const std::string& b, const Tokenizer& tokenizer) {
  if (b.starts_with(a)) return a.size();
  std::vector<int32_t> x = tokenizer.encode(a, true), y = tokenizer.encode(b, true);
  x.resize(static_cast<size_t>(std::ranges::mismatch(x, y).in1 - x.begin()));
  const std::string common = tokenizer.decode(x);
  return a.starts_with(common) && b.starts_with(common) ? common.size() : 0;
}

std::vector<int32_t> specials_in(const std::vector<int32_t>& tokens, const Tokenizer& tokenizer) {
  std::vector<int32_t> specials;
  std::ranges::copy_if(tokens, std::back_inserter(specials), [&](int32_t id) { return tokenizer.is_special(id); });
  return specials;
}

// each(begin, end, of the template) for each run of bytes of one origin.
template <class Each>
void for_each_run(const jinja::Text& text, const Each& each) {
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    while (end < text.size() && of_template(text, end) == of_template(text, begin)) ++end;
    each(begin, end, of_template(text, begin));
  }
}

void append(std::vector<int32_t>& tokens, const std::vector<int32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

}  // namespace

std::string chat_template_file(const Tokenizer& tokenizer) {
  const std::vector<TokenizerFile> files = tokenizer.files();
  if (file_of(files, "chat_template.jinja")) return "chat_template.jinja";
  const char* config = "tokenizer_config.json";
  const ChatJson value = config_of(files, config).value("chat_template", ChatJson());
  return value.is_null() ? "" : config;
}

std::vector<int32_t> encode_rendered(const jinja::Text& text, const Tokenizer& tokenizer) {
  std::vector<int32_t> whole = tokenizer.encode(text.bytes, true), wanted;
  std::vector<size_t> at;  // of the specials that the template wrote
  bool literal = true;     // they stand there as they are
  for_each_run(text, [&](size_t begin, size_t end, bool own) {
    if (!own) return;
    for (const int32_t id : specials_in(tokenizer.encode(text.bytes.substr(begin, end - begin), true), tokenizer)) {
      const size_t found = text.bytes.find(tokenizer.token_bytes(id), begin);
      if (!(literal = literal && found < end)) return;
      wanted.push_back(id), at.push_back(found);
      begin = found + tokenizer.token_bytes(id).size();
    }
  });
  if (specials_in(whole, tokenizer) == wanted) return whole;
  std::vector<int32_t> tokens;  // a message has the text of a special, or a part of one
  if (!literal) {
    for_each_run(text, [&](size_t begin, size_t end, bool own) {
      append(tokens, tokenizer.encode(text.bytes.substr(begin, end - begin), own));
    });
    return tokens;
  }
  size_t begin = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    append(tokens, tokenizer.encode(text.bytes.substr(begin, at[i] - begin)));
    tokens.push_back(wanted[i]);
    begin = at[i] + tokenizer.token_bytes(wanted[i]).size();
  }
  append(tokens, tokenizer.encode(text.bytes.substr(begin)));
  return tokens;
}

std::shared_ptr<const FolderTemplate> FolderTemplate::of(const Tokenizer& tokenizer) {
  const std::vector<TokenizerFile> files = tokenizer.files();
  const std::string file = chat_template_file(tokenizer);
  if (file.empty()) return nullptr;
  std::map<std::string, std::string> texts;
  if (file.ends_with(".jinja"))
    texts["default"] = file_of(files, file)->contents;
  else
    texts = templates_of(config_of(files, file.c_str()).at("chat_template"));
  check(texts.contains("default"), ErrorKind::input, [&] {
    return "bad chat_template of " + file + ": expected text, or a list of names and templates with one named default";
  });
  return std::shared_ptr<const FolderTemplate>(new FolderTemplate(
      file, texts["default"], texts.contains("tool_use") ? texts["tool_use"] : "", special_tokens(files), tokenizer));
}

FolderTemplate::FolderTemplate(std::string file, const std::string& text, const std::string& tool_text,
                               std::map<std::string, Value> tokens, const Tokenizer& tokenizer)
    : file_(std::move(file)), text_(text), tool_text_(tool_text), tokens_(std::move(tokens)) {
  plain_ = std::make_unique<jinja::Template>(text, "chat template of " + file_);
  if (!tool_text.empty())
    with_tools_ = std::make_unique<jinja::Template>(tool_text, "chat template tool_use of " + file_);
  probe(tokenizer);
}

std::string FolderTemplate::source() const {
  return tool_text_.empty() ? text_ : text_ + "\n{# tool_use #}\n" + tool_text_;
}

jinja::Text FolderTemplate::render(const std::vector<ChatTurn>& turns, const ChatJson& tools, bool open) const {
  const bool some = tools.is_array() && !tools.empty();
  ChatJson messages = ChatJson::array();
  for (const ChatTurn& turn : turns) messages.push_back(message_of(turn));
  std::map<std::string, Value> variables = tokens_;
  variables["messages"] = Value::of(messages);
  variables["tools"] = some ? Value::of(tools) : Value::none();
  variables["documents"] = Value::none();
  variables["add_generation_prompt"] = Value::boolean(open);
  return (some && with_tools_ ? *with_tools_ : *plain_).render(variables);
}

// Renders short conversations: a template that cannot be rendered is found before the first request. What it rejects
// itself (raise_exception) depends on the messages.
void FolderTemplate::probe(const Tokenizer& tokenizer) {
  const ChatTurn question{"user", "question-7c1"}, answer{"assistant", "answer-7c1"};
  const auto rendered = [&](const std::vector<ChatTurn>& turns, const ChatJson& tools) -> std::string {
    try {
      return render(turns, tools, turns.size() == 1).bytes;
    } catch (const jinja::Raised&) {
      return "";
    }
  };
  rendered({question}, nullptr);
  const auto behind = [&](const std::vector<ChatTurn>& turns) {
    const std::string said = rendered(turns, nullptr);
    const size_t at = said.rfind(answer.content);
    return at == std::string::npos ? "" : said.substr(at + answer.content.size());
  };
  // The last answer and one in between: a template may end otherwise than an answer.
  const std::string last = behind({question, answer}), inner = behind({question, answer, question});
  answer_end_ = detail::trim(inner.empty() ? last : last.substr(0, common_bytes(last, inner, tokenizer)));
  marks_ = {"<tool_call>\n", "\n</tool_call>"};
  ChatTurn calls{"assistant", ""};
  const ChatJson function = {{"name", "name-7c1"}, {"arguments", {{"argument-7c1", "value"}}}};
  calls.calls = ChatJson::array({{{"id", "call00001"}, {"type", "function"}, {"function", function}}});
  const ChatJson tool = {{"type", "function"},
                         {"function", {{"name", "name-7c1"}, {"description", ""}, {"parameters", ChatJson::object()}}}};
  std::string called;
  try {
    const std::string before = render({question}, ChatJson::array({tool}), true).bytes;
    called = render({question, calls}, ChatJson::array({tool}), false).bytes;
    if (!called.starts_with(before)) return;
    called.erase(0, before.size());
  } catch (const Error&) {  // no calls of tools in this template
    return;
  }
  // The largest JSON object around the name that has both parts, and the text around it.
  const size_t name = called.find("\"name-7c1\"");
  for (size_t at = 0; name != std::string::npos && (at = called.find('{', at)) < name; ++at) {
    const size_t end = io::end_of_json(called, at);
    if (end == std::string::npos || end < name) continue;
    try {
      const ChatJson object = io::parse_ordered_json(called.substr(at, end - at), "call");
      if (object.value("name", ChatJson()) != "name-7c1" || !object.contains("arguments")) continue;
    } catch (const Error&) {
      continue;
    }
    std::string after = called.substr(end);
    if (const size_t stop = after.find(answer_end_); !answer_end_.empty() && stop != std::string::npos)
      after.resize(stop);
    while (after.ends_with('\n') && answer_end_.empty()) after.pop_back();
    if (at > 0) marks_ = {called.substr(0, at), after};
    return;
  }
}

std::vector<int32_t> FolderTemplate::prompt(const std::vector<ChatTurn>& turns, const ChatJson& tools,
                                            const Tokenizer& tokenizer) const {
  return encode_rendered(render(turns, tools, true), tokenizer);
}

// The texts of the answers that are learnt: [begin, end).
std::vector<std::pair<size_t, size_t>> FolderTemplate::answers(const Conversation& talk, const jinja::Text& whole,
                                                               const Tokenizer& tokenizer) const {
  const auto answers_it = [](const ChatTurn& turn) { return turn.role == "assistant"; };
  const auto ignored = [&](const ChatTurn& turn) { return answers_it(turn) && !turn.learnt; };
  std::vector<std::pair<size_t, size_t>> found;
  const bool some_tools = talk.tools.is_array() && !talk.tools.empty();
  if ((some_tools && with_tools_ ? with_tools_ : plain_)->has_generation()) {
    for (size_t begin = 0, end = 0; begin < whole.size(); begin = end) {
      while (end < whole.size() && generation_at(whole, end) == generation_at(whole, begin)) ++end;
      if (generation_at(whole, begin) != 0) found.emplace_back(begin, end);
    }
    if (std::ranges::none_of(talk.turns, ignored)) return found;
    const auto n = std::ranges::count_if(talk.turns, answers_it);
    check(std::ssize(found) == n, ErrorKind::input, [&] {
      return str("the chat template has ", found.size(), " {% generation %} blocks for ", n,
                 " messages of the assistant, of which some have \"weight\": 0: expected one for each");
    });
    size_t i = 0;
    std::vector<std::pair<size_t, size_t>> learnt;
    for (const ChatTurn& turn : talk.turns)
      if (answers_it(turn) && turn.learnt)
        learnt.push_back(found[i++]);
      else if (answers_it(turn))
        ++i;
    return learnt;
  }
  for (size_t i = 0; i < talk.turns.size(); ++i) {
    if (!answers_it(talk.turns[i]) || !talk.turns[i].learnt) continue;
    const auto first = talk.turns.begin(), here = first + static_cast<std::ptrdiff_t>(i);
    const std::string before = render({first, here}, talk.tools, true).bytes;
    const bool last = i + 1 == talk.turns.size();
    const jinja::Text behind = last ? whole : render({first, here + 1}, talk.tools, false);
    size_t said = behind.size();  // the end of what messages wrote
    while (said > before.size() && of_template(behind, said - 1)) --said;
    check(behind.bytes.starts_with(before) && whole.bytes.starts_with(behind.bytes.substr(0, said)), ErrorKind::input,
          [&] {
            return str(
                "the chat template writes what stands before or in message ", i + 1, " of ", talk.turns.size(),
                " in another way when more messages follow: answers cannot be told from the rest; expected a template "
                "with {% generation %} blocks, or another one");
          });
    // What follows belongs to the answer as far as it does not depend on what follows it.
    const size_t end =
        last ? whole.size() : said + common_bytes(behind.bytes.substr(said), template_run(whole, said), tokenizer);
    found.emplace_back(before.size(), trimmed_end(whole, before.size(), end));
  }
  return found;
}

Sample FolderTemplate::sample(const Conversation& talk, const std::string& place, const Tokenizer& tokenizer) const {
  jinja::Text whole;
  std::vector<std::pair<size_t, size_t>> spans;
  try {
    whole = render(talk.turns, talk.tools, false);
    spans = answers(talk, whole, tokenizer);
  } catch (const Error& error) {
    fail(ErrorKind::input, str("cannot use ", place, ": ", error.what()));
  }
  const bool ends_answer = talk.turns.back().role == "assistant" && talk.turns.back().learnt;
  if (ends_answer) whole = whole.sub(0, trimmed_end(whole, spans.empty() ? 0 : spans.back().first, whole.size()));
  for (auto& [begin, end] : spans) end = std::min(end, whole.size());
  // A token that ends at each bound, where the tokens of the whole text have one; otherwise the parts are encoded
  // apart.
  std::vector<size_t> bounds;
  for (const auto& [begin, end] : spans) bounds.insert(bounds.end(), {begin, end});
  Sample sample;
  sample.tokens = encode_rendered(whole, tokenizer);
  sample.counted.resize(sample.tokens.size());
  std::vector<size_t> counts;  // of the tokens before each bound
  for (const size_t bound : bounds) {
    const std::vector<int32_t> part = encode_rendered(whole.sub(0, bound), tokenizer);
    if (part.size() > sample.tokens.size() || !std::equal(part.begin(), part.end(), sample.tokens.begin())) break;
    counts.push_back(part.size());
  }
  if (counts.size() < bounds.size()) {
    sample.tokens.clear(), counts.clear();
    bounds.push_back(whole.size());
    size_t begin = 0;
    for (const size_t bound : bounds) {
      append(sample.tokens, encode_rendered(whole.sub(begin, bound - begin), tokenizer));
      counts.push_back(sample.tokens.size());
      begin = bound;
    }
    sample.counted.assign(sample.tokens.size(), false);
  }
  for (size_t i = 0; i + 1 < counts.size(); i += 2)
    for (size_t at = counts[i]; at < counts[i + 1]; ++at) sample.counted[at] = true;
  const int32_t end = document_end(tokenizer, "every sample ends with");
  if (sample.tokens.empty() || sample.tokens.back() != end)
    sample.tokens.push_back(end), sample.counted.push_back(ends_answer);
  return sample;
}

}  // namespace braid::models::text
