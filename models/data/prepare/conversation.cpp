#include "braid/models/data/prepare/conversation.h"

#include <algorithm>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models::text {
namespace {

using json = ChatJson;
constexpr int64_t kArgumentSteps = 10'000'000;  // of the parser: 3000 names of an object, or 4000 objects of a list
constexpr const char *kMessages = "messages", *kConversations = "conversations", *kAnswering = "assistant";

// The names of ShareGPT's speakers, and what they are here.
constexpr std::pair<const char*, const char*> kSpeakers[] = {
    {"human", "user"},       {"user", "user"},      {"gpt", kAnswering}, {"assistant", kAnswering},
    {"chatgpt", kAnswering}, {"model", kAnswering}, {"system", "system"}};

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
    ChatTurn turn =
        read_message(message, [&](const std::string& name, const std::string& expected, const nlohmann::json& found) {
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
    if (!beside.is_string() || beside.get_ref<const std::string&>().empty()) return {};
    return {{"system", beside.get<std::string>()}};
  }
  json tools(const json& object) const {
    json list = object.value("tools", json());
    if (list.is_string()) list = io::parse_ordered_json(list.get<std::string>(), place);
    const auto described = [](const json& tool) { return tool.is_object(); };
    if (!list.is_null() && !(list.is_array() && std::ranges::all_of(list, described)))
      bad("a list of objects in the field \"tools\"", list.type_name());
    return list;
  }
  std::vector<ChatTurn> question(const json& object) const {
    std::vector<ChatTurn> turns = system(object);
    std::string asked = text(object, "instruction");
    const json input = object.value("input", json());
    const bool none = input.is_null() || (input.is_string() && input.get_ref<const std::string&>().empty());
    if (!none) asked += "\n" + text(object, "input");
    turns.push_back({"user", asked});
    turns.push_back({kAnswering, text(object, "output")});
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

// The calls of a message, with their arguments as objects: templates read their names.
json read_calls(const json& calls, const BadMessage& bad) {
  const char* expected =
      "a list of {\"type\": \"function\", \"function\": {\"name\", \"arguments\"}}, the arguments an object or its "
      "text";
  if (!calls.is_array()) bad("tool_calls", expected, calls);
  json result = calls;
  for (json& call : result) {
    const json function = call.is_object() ? call.value("function", json()) : json();
    const json name = function.is_object() ? function.value("name", json()) : json();
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) bad("tool_calls", expected, call);
    json arguments = function.value("arguments", json::object());
    if (arguments.is_string()) {
      const std::string text = arguments.get<std::string>();
      try {
        arguments = text.empty() ? json::object() : io::parse_ordered_json(text, "arguments", kArgumentSteps);
      } catch (const Error&) {  // named below
      }
    }
    if (!arguments.is_object()) bad("tool_calls", expected, call);
    call["function"]["arguments"] = std::move(arguments);
  }
  return result;
}

}  // namespace

ChatTurn read_message(const json& message, const BadMessage& bad) {
  if (!message.is_object()) bad("", "an object with role and content", message);
  const auto text_of = [&](const char* field) {
    const json value = message.value(field, json());
    if (!value.is_string() && !value.is_null()) bad(field, "a string", value);
    return value.is_string() ? value.get<std::string>() : "";
  };
  ChatTurn turn{.role = text_of("role"), .content = ""};
  if (turn.role.empty() || turn.role.size() > 64 ||
      turn.role.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos)
    bad("role", "letters a to z, such as user, assistant or system", message.value("role", json()));
  const auto some = [](const json& value) { return !value.is_null() && !(value.is_array() && value.empty()); };
  if (const json made = message.value("function_call", json()); some(made))
    bad("function_call", "the call in \"tool_calls\"", made);
  if (const json made = message.value("tool_calls", json()); some(made)) {
    if (turn.role != kAnswering) bad("tool_calls", "calls of the assistant alone", made);
    turn.calls = read_calls(made, bad);
  }
  turn.call_id = text_of("tool_call_id"), turn.name = text_of("name");
  const json content = message.value("content", json());
  if (content.is_null()) return turn;
  if (content.is_string()) return turn.content = content.get<std::string>(), turn;
  const char* expected = "a string or a list of {\"type\": \"text\", \"text\": ...}";
  if (!content.is_array()) bad("content", expected, content);
  for (const json& part : content) {
    const char* type = part.is_object() && part.value("type", json()) == "refusal" ? "refusal" : "text";
    const bool is_text =
        part.is_object() && part.value("type", json()) == type && part.contains(type) && part.at(type).is_string();
    if (!is_text) bad("content", expected, part);
    turn.content += part.at(type).get_ref<const std::string&>();
  }
  return turn;
}

Conversation read_conversation(std::string_view line, const std::string& place, const SampleFormat& format) {
  const Line in{place};
  const json object = io::parse_ordered_json(line, place);
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
  Conversation result;
  std::vector<ChatTurn>& turns = result.turns;
  if (talk) {
    if (talk == kConversations) turns = in.system(object);
    in.messages(object, talk, turns);
    result.tools = in.tools(object);
  } else if (format.chat && asked && object.contains(answer_field) && object.at(format.prompt_field).is_array()) {
    for (const std::string& field : {format.prompt_field, answer_field}) in.messages(object, field.c_str(), turns);
  } else if (format.chat && !asked && alpaca) {
    turns = in.question(object);
  } else if (format.chat && !asked && format.prompt_field == SampleFormat().prompt_field) {
    in.no_form(object);
  }
  if (turns.empty())
    turns = {{"user", in.text(object, format.prompt_field)}, {kAnswering, in.text(object, answer_field)}};
  return result;
}

std::pair<Conversation, Conversation> read_preference(std::string_view line, const std::string& place,
                                                      const SampleFormat& format) {
  const Line in{place};
  const json object = io::parse_ordered_json(line, place);
  if (!object.is_object()) in.bad("a JSON object", object.type_name());
  const auto turns_of = [&](const std::string& field, const char* role) {
    const char* expected =
        format.chat ? "text or a list of messages" : "text (a list of messages needs a chat template, `chat`)";
    const json value = object.value(field, json());
    const std::string name = "the field \"" + field + "\"";
    if (!object.contains(field)) in.bad(expected + (" in " + name), "none");
    std::vector<ChatTurn> turns;
    if (value.is_array() && format.chat)
      in.messages(object, field.c_str(), turns);
    else if (value.is_string())
      turns.push_back({role, value.get<std::string>()});
    else
      in.bad(expected + (" in " + name), value.type_name());
    if (role == std::string(kAnswering) && turns.back().role != role)
      in.bad("a last message of the assistant in " + name, "one of role '" + turns.back().role + "'");
    return turns;
  };
  std::vector<ChatTurn> prompt = format.chat ? in.system(object) : std::vector<ChatTurn>();
  for (ChatTurn& turn : turns_of(format.prompt_field, "user")) {
    turn.learnt = false;
    prompt.push_back(std::move(turn));
  }
  const auto with = [&](const char* field) {
    Conversation talk{prompt, in.tools(object)};
    for (ChatTurn& turn : turns_of(field, kAnswering)) talk.turns.push_back(std::move(turn));
    return talk;
  };
  return {with("chosen"), with("rejected")};
}

}  // namespace braid::models::text
