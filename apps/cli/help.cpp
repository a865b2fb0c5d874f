#include "apps/cli/help.h"

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

constexpr size_t help_column = 26;

// Two columns: what to type, what it does. A long left side gets its own line.
std::string help_row(const HelpRow& help) {
  std::string row = "  " + help.left;
  if (help.right.empty()) return row + "\n";
  if (row.size() + 2 > help_column)
    row += "\n" + std::string(help_column, ' ');
  else
    row.resize(help_column, ' ');
  return row + help.right + "\n";
}

}  // namespace

std::string usage(const Command& command) {
  std::string line = "braid " + command.name;
  for (const Positional& p : command.positionals) {
    const std::string name = p.name + (p.repeated ? "..." : "");
    line += p.required ? " " + name : " [" + name + "]";
  }
  if (!command.overrides.empty()) line += " [key=value ...]";
  for (const Flag& f : command.flags)
    if (f.required) line += " --" + f.name + " " + f.value;
  return line + " [flags]";
}

std::vector<HelpRow> argument_rows(const Command& command) {
  std::vector<HelpRow> rows;
  for (const Positional& p : command.positionals) rows.push_back({p.name, p.help});
  if (!command.overrides.empty()) rows.push_back({"key=value", command.overrides});
  return rows;
}

std::vector<HelpRow> flag_rows(const Command& command) {
  std::vector<HelpRow> rows;
  for (const Flag& f : command.flags) {
    auto& [left, right] = rows.emplace_back((f.alias ? str("-", f.alias, ", ") : "    ") + "--" + f.name, f.help);
    if (!f.value.empty()) left += " " + f.value;
    if (!f.rule.choices.empty()) right += ": " + join(f.rule.choices, ", ");
    if (f.repeated) right += " (may be repeated)";
    if (!f.fallback.empty()) right += " [" + f.fallback + "]";
  }
  rows.push_back({"-h, --help", "this text"});
  return rows;
}

std::string help_text(const Command& command) {
  std::string text = "braid " + command.name + ": " + command.summary + "\n\nusage: " + usage(command) + "\n\n";
  for (const HelpRow& row : argument_rows(command)) text += help_row(row);
  text += "\n";
  for (const HelpRow& row : flag_rows(command)) text += help_row(row);
  if (!command.details.empty()) text += "\n" + command.details + "\n";
  if (!command.examples.empty()) text += "\nexamples:\n";
  for (const std::string& example : command.examples) text += "  " + example + "\n";
  return text;
}

const std::vector<HelpRow>& program_notes() {
  static const std::vector<HelpRow> notes = {
      {"exit codes",
       "0 done, 2 bad flag or setting, 3 bad input file, 4 cannot write, 5 numerical failure,\n"
       "6 another process failed, 7 no usable checkpoint, 70 internal error, 75 stopped on request"},
      {"mpirun",
       "train, generate and bench comm share their work among the processes; of other commands the first\n"
       "process does it. mpirun ends with their code, but with 1 where SIGINT or SIGTERM is sent to it:\n"
       "send SIGUSR1, which it passes on, to stop with the state saved and code 75"},
      {"environment",
       "BRAID_DEBUG=ops,mem,nan,comm,sync prints every tensor operation, its memory, stops at the first NaN,\n"
       "prints every transfer between processes, waits for the device after each"}};
  return notes;
}

std::string help_text(const std::vector<Command>& commands) {
  std::string text = str("braid: ", program_summary, "\n\nusage: ", program_usage, "\n\n");
  for (const Command& command : commands) text += help_row({command.name, command.summary});
  text += "\nbraid COMMAND --help explains a command; braid --version shows version, commit, backends and processor.\n";
  for (const auto& [title, note] : program_notes()) {
    std::string start = title + ":";
    for (const std::string& line : split(note, '\n')) {
      start.resize(13, ' ');
      text += start + line + "\n";
      start.clear();
    }
  }
  return text;
}

}  // namespace braid::apps
