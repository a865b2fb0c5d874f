#include "apps/cli/shell_files.h"

#include <filesystem>
#include <map>

#include "apps/cli/help.h"
#include "apps/cli/text.h"
#include "apps/cli/version.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {
namespace {

constexpr const char* made_by = "made by `braid --shell-files`";
const Flag help_flag{.name = "help", .alias = 'h', .help = "show what the command does"};

std::vector<Flag> flags_of(const Command& command) {
  std::vector<Flag> flags = command.flags;
  flags.push_back(help_flag);
  return flags;
}

// The text with some of its characters written as a shell or troff wants them.
std::string written(const std::string& text, const std::map<char, std::string>& characters) {
  std::string result;
  for (const char c : text) {
    const auto found = characters.find(c);
    result += found == characters.end() ? std::string(1, c) : found->second;
  }
  return result;
}

std::string in_quotes(const std::string& text) { return "'" + written(text, {{'\'', "'\\''"}}) + "'"; }

// "model.dim= model.n_head=", for settings that are given as key=value.
std::string keys_of(const Command& command) {
  std::string keys;
  if (command.keys)
    for (const std::string& key : command.keys()) keys += (keys.empty() ? "" : " ") + key + "=";
  return keys;
}

// The values of the first argument, where the command has a list of them.
std::string choices_of(const Command& command) {
  return command.positionals.empty() ? "" : join(command.positionals[0].choices, " ");
}

// Any string may be a path; a number is none.
bool takes_files(const Flag& flag) { return flag.rule.type == models::ValueType::string && flag.rule.choices.empty(); }

std::string bash(const std::vector<Command>& commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += command.name + " ";
    std::string flags, values;
    for (const Flag& flag : flags_of(command)) {
      const std::string spellings = "--" + flag.name + (flag.alias ? str("|-", flag.alias) : "");
      flags += "--" + flag.name + " ";
      if (flag.value.empty()) continue;
      values += "        " + spellings + ") ";
      values += takes_files(flag) ? "return ;;\n"
                                  : "_braid_words " + in_quotes(join(flag.rule.choices, " ")) + "; return ;;\n";
    }
    cases += "    " + command.name + ")\n      flags=" + in_quotes(flags) + " keys=" + in_quotes(keys_of(command));
    if (const std::string choices = choices_of(command); !choices.empty()) cases += " first=" + in_quotes(choices);
    cases += "\n";
    if (!values.empty()) cases += "      case $before in\n" + values + "      esac\n";
    cases += "      ;;\n";
  }
  return str("# bash completion of braid, ", made_by, R"(
_braid_words() {  # these, and no files
  compopt +o default
  COMPREPLY=($(compgen -W "$1" -- "$word"))
}

_braid() {
  # bash splits --flag=value and key=value into three words.
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags= keys= first= given=
  if [[ $word == = ]]; then
    word= given=yes
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]} given=yes
  fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)) || [[ ${COMP_WORDS[1]} == help ]]; then
    _braid_words ')",
             names, R"(help --help --version'
    return
  fi
  case ${COMP_WORDS[1]} in
)",
             cases, R"(  esac
  if [[ $word == -* ]]; then
    _braid_words "$flags"
  elif [[ -n $first && $COMP_CWORD == 2 ]]; then
    COMPREPLY=($(compgen -W "$first" -- "$word"))
  elif [[ -n $word && -z $given ]]; then  # a file where no setting begins like that
    COMPREPLY=($(compgen -W "$keys" -- "$word"))
    [[ ${#COMPREPLY[@]} == 0 ]] || compopt -o nospace
  fi
}
complete -o default -F _braid braid
)");
}

std::string zsh(const std::vector<Command>& commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += "    " + in_quotes(command.name + ":" + command.summary) + "\n";
    const std::string keys = keys_of(command);
    cases += "    " + command.name + ")\n" + (keys.empty() ? "" : "      keys=(" + keys + ")\n") + "      _arguments";
    for (const Flag& flag : flags_of(command)) {
      std::string values;
      for (const std::string& value : split(flag.value, ' '))
        if (!value.empty())
          values += (flag.alone.empty() ? ":" : "::") + written(value, {{':', "\\:"}}) + ":" +
                    (takes_files(flag) ? "_files" : "(" + join(flag.rule.choices, " ") + ")");
      std::vector<std::string> spellings = {"--" + flag.name};
      if (flag.alias) spellings.push_back(str("-", flag.alias));
      for (const std::string& spelling : spellings) {
        const bool equals = spelling.size() > 2 && !values.empty() && flag.value.find(' ') == std::string::npos;
        cases += " \\\n        " +
                 in_quotes((flag.repeated ? "*" : "(" + join(spellings, " ") + ")") + spelling + (equals ? "=" : "") +
                           "[" + written(flag.help, {{'\\', "\\\\"}, {'[', "\\["}, {']', "\\]"}}) + "]" + values);
      }
    }
    if (const std::string choices = choices_of(command); !choices.empty())
      cases += " \\\n        '1: :(" + choices + ")'";
    cases += str(" \\\n        ", keys.empty() ? "'*: :_files'" : "'*: :{ compadd -S \"\" -a keys; _files }'", " ;;\n");
  }
  return str("#compdef braid\n# zsh completion of braid, ", made_by, R"(
_braid() {
  local -a keys commands=(
)",
             names, R"(  )
  if ((CURRENT == 2)) || [[ $words[2] == help ]]; then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
)",
             cases, R"(  esac
}
_braid "$@"
)");
}

std::string fish(const std::vector<Command>& commands) {
  const auto text = [](const std::string& plain) { return in_quotes(written(plain, {{'\\', "\\\\"}})); };
  std::string lines = str("# fish completion of braid, ", made_by, "\n");
  for (const Command& command : commands) {
    lines += "complete -c braid -n __fish_use_subcommand -fa " + command.name + " -d " + text(command.summary) + "\n";
    const std::string start = "complete -c braid -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const Flag& flag : flags_of(command)) {
      lines += start + (flag.alias ? str(" -s ", flag.alias) : "") + " -l " + flag.name + " -d " + text(flag.help);
      if (!flag.value.empty()) lines += takes_files(flag) ? " -rF" : " -xa " + text(join(flag.rule.choices, " "));
      lines += "\n";
    }
    if (const std::string choices = choices_of(command); !choices.empty())
      lines += start + " -a " + in_quotes(choices) + "\n";
    if (const std::string keys = keys_of(command); !keys.empty()) lines += start + " -a " + in_quotes(keys) + "\n";
  }
  return lines;
}

// Text for troff, which takes a line that begins with a dot for a command.
std::string roff(const std::string& text) {
  std::string result;
  bool indented = false;
  for (const std::string& line : split(text, '\n')) {
    // Rows of a table begin with a space, which ends the line before; the line after them must not join the last.
    if (indented && !line.starts_with(" ") && !line.empty()) result += ".br\n";
    indented = line.starts_with(" ");
    const std::string plain =
        written(line, {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}});
    result += (plain.starts_with(".") ? "\\&" : "") + plain + "\n";
  }
  return result;
}

std::string roff_rows(const std::string& title, const std::vector<HelpRow>& rows) {
  std::string text = ".SH " + title + "\n";
  for (const auto& [left, right] : rows) text += ".TP\n\\fB" + roff(std::string(trim(left))) + "\\fR" + roff(right);
  return rows.empty() ? "" : text;
}

std::string page_start(const std::string& name, const std::string& summary, const std::string& usage) {
  return str(".\\\" ", made_by, "\n.TH ", name, " 1 \"\" \"braid ", version(), "\" \"Braid\"\n.SH NAME\n",
             roff(name + " - " + summary), ".SH SYNOPSIS\n", roff(usage));
}

std::string page(const Command& command) {
  std::string text = page_start("braid-" + command.name, command.summary, usage(command));
  text += roff_rows("ARGUMENTS", argument_rows(command)) + roff_rows("OPTIONS", flag_rows(command));
  if (!command.details.empty()) text += ".SH DESCRIPTION\n" + roff(command.details);
  if (!command.examples.empty()) text += ".SH EXAMPLES\n.nf\n" + roff(join(command.examples, "\n")) + ".fi\n";
  return text + ".SH SEE ALSO\n" + roff("braid(1)");
}

}  // namespace

void write_shell_files(const std::vector<Command>& commands, const std::string& folder) {
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(folder) / path;
    io::make_folder(file.parent_path());
    io::write_file(file, text);
  };
  std::vector<HelpRow> rows;
  for (const Command& command : commands) {
    rows.push_back({command.name, command.summary});
    write("man/man1/braid-" + command.name + ".1", page(command));
  }
  write("man/man1/braid.1", page_start("braid", program_summary, program_usage) + roff_rows("COMMANDS", rows) +
                                roff_rows("NOTES", program_notes()));
  write("bash-completion/completions/braid", bash(commands));
  write("zsh/vendor-completions/_braid", zsh(commands));
  write("fish/vendor_completions.d/braid.fish", fish(commands));
}

}  // namespace braid::apps
