#include "apps/chat/commands.h"

#include "apps/cli/output_name.h"
#include "apps/cli/text.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

using Kind = ChatLine::Kind;

std::string settings_text(const ChatSession& conversation) {
  std::string text;
  for (const models::Setting& s : conversation.settings()) {
    std::string row = "  " + s.name + " = " + models::value_text(s.get());
    row.resize(std::max<size_t>(row.size() + 2, 30), ' ');
    text += row + s.help + "\n";
  }
  return text;
}

ChatLine set(const std::string& rest, ChatSession& conversation) {
  if (rest.empty()) return {Kind::done, settings_text(conversation)};
  const size_t space = std::min(rest.find(' '), rest.size());
  const std::string name = rest.substr(0, space), value(trim(std::string_view(rest).substr(space)));
  conversation.set(name, value);
  return {Kind::done,
          name + " = " + models::value_text(models::find_setting(conversation.settings(), name)->get()) + "\n"};
}

ChatLine history(const std::string&, ChatSession& conversation) {
  std::string text;
  for (const models::text::ChatTurn& turn : conversation.turns())
    text += turn.role + ": " + printable(turn.content, "\n") + "\n";
  return {Kind::done, text.empty() ? "nothing was said yet\n" : text};
}

ChatLine save(const std::string& rest, ChatSession& conversation) {
  check(!rest.empty(), ErrorKind::setting, "/save needs the name of a file");
  const std::vector<models::text::ChatTurn>& turns = conversation.turns();
  check(!turns.empty() && turns.back().role != "system", ErrorKind::setting, "nothing was said yet");
  check_output_name("/save", rest);
  std::string lines = io::is_file(rest) ? io::read_text_file(rest, 1 << 28) : "";
  if (!lines.empty() && !lines.ends_with('\n')) lines += "\n";
  io::write_file(rest, lines + conversation.json() + "\n");
  return {Kind::done, str("added ", turns.size(), " turns to ", rest, "\n")};
}

struct Named {
  const char *name, *argument, *help;
  ChatLine (*run)(const std::string& rest, ChatSession& conversation);
};
constexpr Named commands[] = {
    {"help", "", "this list",
     [](const std::string&, ChatSession&) {
       return ChatLine{Kind::done, chat_help()};
     }},
    {"reset", "", "forget the conversation, but for the system's turn",
     [](const std::string&, ChatSession& c) {
       return c.reset(), ChatLine{Kind::done, "the conversation begins anew\n"};
     }},
    {"again", "", "draw the last answer anew",
     [](const std::string&, ChatSession&) {
       return ChatLine{Kind::again, ""};
     }},
    {"undo", "", "take the last answer and what was said before it back",
     [](const std::string&, ChatSession& c) {
       return c.undo(), ChatLine{Kind::done, "taken back\n"};
     }},
    {"history", "", "print the conversation", history},
    {"system", "TEXT", "set the system's turn; without TEXT remove it",
     [](const std::string& rest, ChatSession& c) {
       return c.system(rest), ChatLine{Kind::done, rest.empty() ? "no system's turn\n" : "the system's turn is set\n"};
     }},
    {"set", "[NAME VALUE]", "how answers are drawn, for example /set temperature 0.7; alone: all settings", set},
    {"save", "FILE", "add the conversation to a file, as a line of data for braid prepare --chat", save},
    {"quit", "", "end; also the end of input (Ctrl-D)",
     [](const std::string&, ChatSession&) {
       return ChatLine{Kind::quit, ""};
     }},
};

}  // namespace

std::string chat_help() {
  std::string text;
  for (const Named& command : commands) {
    std::string row = str("  /", command.name, *command.argument ? " " : "", command.argument);
    row.resize(24, ' ');
    text += row + command.help + "\n";
  }
  return text + "  Ctrl-C ends an answer; a line that begins with // is said with one slash\n";
}

ChatLine take_line(const std::string& line, ChatSession& conversation) {
  if (line.starts_with("//")) return {Kind::text, line.substr(1)};
  if (!line.starts_with('/')) return {Kind::text, line};
  const size_t space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(1, space - 1), rest(trim(std::string_view(line).substr(space)));
  std::vector<std::string> names;
  for (const Named& command : commands) {
    if (name == command.name) {
      check(rest.empty() || *command.argument, ErrorKind::setting,
            [&] { return "/" + name + " takes no argument, found '" + preview(rest) + "'"; });
      return command.run(rest, conversation);
    }
    names.push_back(command.name);
  }
  fail(ErrorKind::setting, "there is no command /" + preview(name) + ": expected one of /" + join(names, ", /") +
                               did_you_mean(name, names));
}

}  // namespace braid::apps
