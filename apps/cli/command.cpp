#include "apps/cli/command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>
#include <thread>

#include "apps/cli/help.h"
#include "apps/cli/shell_files.h"
#include "apps/cli/text.h"
#include "apps/cli/version.h"
#include "braid/distributed/comm/mpi_session.h"
#include "braid/tensor/base/float_mode.h"
#include "braid/tensor/device.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {
namespace {

const std::vector<std::string>& values_of(const std::map<std::string, std::vector<std::string>>& values,
                                          const std::string& name) {
  const auto found = values.find(name);
  check(found != values.end(), "arguments", [&] { return "the command's table has no '" + name + "'"; });
  return found->second;
}

std::string expectation(const Flag& flag) {
  const bool any_text = flag.rule.type == models::ValueType::string && flag.rule.choices.empty();
  return any_text ? flag.value : models::expectation(flag.rule);
}

bool fits(const Flag& flag, const std::string& text) {
  const std::optional<models::Value> value = models::parse_value(flag.rule, text);
  return value && models::allows(flag.rule, *value);
}

void check_value(const Flag& flag, const std::string& text) {
  check(fits(flag, text), ErrorKind::setting,
        [&] { return models::bad_value("--" + flag.name, flag.rule, "'" + preview(text) + "'", text); });
}

bool is_override(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  return std::all_of(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
}

// The nearest flag, or the setting that was typed as a flag: --seed for run.seed=..., --batch-size.
std::string flag_advice(const Command& command, const std::string& typed, const std::vector<std::string>& flags) {
  std::string word = typed.substr(std::min(typed.find_first_not_of('-'), typed.size()));
  std::vector<std::string> plain;
  for (const std::string& flag : flags) plain.push_back(flag.substr(2));
  const std::string flag = nearest(word, plain);
  std::replace(word.begin(), word.end(), '-', '_');
  const std::string key = command.keys ? nearest(word, command.keys()) : "";
  const std::string last = key.substr(key.rfind('.') + 1);
  if (!key.empty() && (flag.empty() || edit_distance(word, last) < edit_distance(word, flag)))
    return "; did you mean the setting " + key + "=VALUE, without dashes?";
  return flag.empty() ? "" : "; did you mean '--" + flag + "'?";
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\r', ' ');
  return text;
}

// All processes of a job have the same command line: one prints what is wrong with it, and ends the job meanwhile.
Arguments parse_once(const Command& command, const std::vector<std::string>& arguments) {
  try {
    return parse_arguments(command, arguments);
  } catch (const Error& e) {
    if (dist::launched_rank() == 0) throw;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::_Exit(static_cast<int>(e.kind()));
  }
}

int run(const Command& command, const Arguments& arguments) {
  try {
    return command.run(arguments);
  } catch (const OutOfMemory& error) {
    fail(error.kind(), with_flags(command, error.what()) + memory_advice(command, arguments));
  } catch (const std::bad_alloc&) {
    const std::string advice = memory_advice(command, arguments);
    fail(ErrorKind::setting, "out of memory" + (!advice.empty() ? advice
                                                                : "; use a smaller model, train.batch_size or "
                                                                  "data.seq_len, or train.recompute=true"));
  } catch (const Error& error) {
    fail(error.kind(), with_flags(command, error.what()));
  }
}

int dispatch(const std::vector<Command>& commands, std::vector<std::string> arguments) {
  const bool first = dist::launched_rank() == 0;
  const auto print = [&](const std::string& text) {
    if (first) std::fwrite(text.data(), 1, text.size(), stdout);
  };
  if (arguments.size() >= 2 && arguments[0] == "help") arguments = {arguments[1], "--help"};
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print(help_text(commands));
    return 0;
  }
  if (arguments[0] == "--version") {
    print(version_text());
    return 0;
  }
  if (arguments.size() == 2 && arguments[0] == "--shell-files") {
    if (first) write_shell_files(commands, arguments[1]);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == arguments[0]) {
      const Arguments parsed = parse_once(command, {arguments.begin() + 1, arguments.end()});
      if (!parsed.wants_help()) return first || command.shared(parsed) ? run(command, parsed) : 0;
      print(help_text(command));
      return 0;
    }
    names.push_back(command.name);
  }
  if (!first) return 0;
  const bool flag = arguments[0].starts_with("-");
  fail(ErrorKind::setting, str(flag ? "unknown flag '" : "unknown command '", preview(arguments[0]), "'",
                               flag ? "; a command comes first" : did_you_mean(arguments[0], names),
                               " (commands: ", join(names, ", "), ")"));
}

}  // namespace

bool Arguments::has(const std::string& name) const { return !values_of(values_, name).empty(); }

std::string Arguments::get(const std::string& name) const {
  const auto& values = values_of(values_, name);
  return values.empty() ? fallbacks_.at(name) : values.back();
}

int64_t Arguments::get_int(const std::string& name) const {
  const auto value = parse_int(get(name));
  check(value.has_value(), "arguments", [&] { return "--" + name + " has no integer and no fallback"; });
  return *value;
}

double Arguments::get_float(const std::string& name) const {
  const auto value = parse_float(get(name));
  check(value.has_value(), "arguments", [&] { return "--" + name + " has no number and no fallback"; });
  return *value;
}

std::vector<std::string> Arguments::list(const std::string& name) const { return values_of(values_, name); }

Arguments parse_arguments(const Command& command, const std::vector<std::string>& arguments) {
  Arguments result;
  result.line_ = "braid " + command.name;
  for (const std::string& argument : arguments) result.line_ += " " + shell_quote(argument);
  std::vector<std::string> names = {"--help"};
  for (const Positional& p : command.positionals) result.values_[p.name], result.fallbacks_[p.name];
  for (const Flag& f : command.flags) {
    result.values_[f.name], result.fallbacks_[f.name] = f.fallback;
    names.push_back("--" + f.name);
  }
  const auto find_flag = [&](const std::string& typed) -> const Flag& {
    for (const Flag& f : command.flags)
      if (typed == "--" + f.name || (f.alias && typed == str("-", f.alias))) return f;
    fail(ErrorKind::setting, "unknown flag '" + preview(typed) + "' of braid " + command.name +
                                 flag_advice(command, typed, names) + " (braid " + command.name + " --help lists all)");
  };

  std::vector<std::string> plain;
  bool only_plain = false;       // after "--"
  const Flag* unread = nullptr;  // a flag that may stand alone, and what follows it without being a value of it
  std::string unread_text;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_plain || argument.size() < 2 || argument[0] != '-') {
      if (!only_plain && !command.overrides.empty() && is_override(argument))
        result.overrides_.push_back(argument);
      else
        plain.push_back(argument);
      continue;
    }
    if (argument == "--") {
      only_plain = true;
      continue;
    }
    if (argument == "--help" || argument == "-h") {
      result.help_ = true;
      return result;
    }
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const Flag& flag = find_flag(argument.substr(0, equals));
    const auto count = 1 + std::count(flag.value.begin(), flag.value.end(), ' ');
    std::vector<std::string> given;
    if (flag.value.empty()) {
      check(equals == std::string::npos, ErrorKind::setting,
            [&] { return "--" + flag.name + " is a switch and takes no value, found '" + preview(argument) + "'"; });
      given = {"true"};
    } else if (equals != std::string::npos) {
      check(count == 1, ErrorKind::setting, [&] {
        return str("--", flag.name, " takes ", count, " values: write --", flag.name, " ", flag.value, ", found '",
                   preview(argument), "'");
      });
      check_value(flag, given.emplace_back(argument.substr(equals + 1)));
    } else if (!flag.alone.empty() && (i + 1 == arguments.size() || !fits(flag, arguments[i + 1]))) {
      given = {flag.alone};  // what follows is no value of it
      if (i + 1 < arguments.size()) unread = &flag, unread_text = arguments[i + 1];
    }
    while (std::ssize(given) < count) {
      check(i + 1 < arguments.size() && !arguments[i + 1].starts_with("--"), ErrorKind::setting, [&] {
        return "--" + flag.name + " needs " + (count == 1 ? "a value" : str(count, " values")) + ": expected " +
               expectation(flag) + ", found " +
               (i + 1 < arguments.size() ? "the flag '" + preview(arguments[i + 1]) + "'" : "the end of the command");
      });
      check_value(flag, given.emplace_back(arguments[++i]));
    }
    auto& values = result.values_[flag.name];
    check(values.empty() || flag.repeated, ErrorKind::setting,
          [&] { return "--" + flag.name + " is given twice; give it once"; });
    values.insert(values.end(), given.begin(), given.end());
  }

  for (const Flag& f : command.flags)
    check(!f.required || result.has(f.name), ErrorKind::setting,
          [&] { return "--" + f.name + " is missing (" + f.help + "); usage: " + usage(command); });
  size_t next = 0;
  for (const Positional& p : command.positionals) {
    check(next < plain.size() || !p.required, ErrorKind::setting,
          [&] { return p.name + " is missing (" + p.help + "); usage: " + usage(command); });
    const size_t end = p.repeated ? plain.size() : std::min(plain.size(), next + 1);
    for (; next < end; ++next) {
      check(p.choices.empty() || std::ranges::count(p.choices, plain[next]) > 0, ErrorKind::setting, [&] {
        return p.name + ": expected one of " + join(p.choices, ", ") + ", found '" + preview(plain[next]) + "'";
      });
      result.values_[p.name].push_back(plain[next]);
    }
  }
  if (next < plain.size() && unread && plain.back() == unread_text) check_value(*unread, unread_text);
  check(next == plain.size(), ErrorKind::setting,
        [&] { return "argument '" + preview(plain[next]) + "' is one too many; usage: " + usage(command); });
  return result;
}

std::string with_flags(const Command& command, std::string message) {
  const auto replace_all = [&](const std::string& option, const std::string& by) {
    for (size_t at = 0; (at = message.find("`" + option + "`", at)) != std::string::npos; at += by.size())
      message.replace(at, option.size() + 2, by);
  };
  for (const Positional& p : command.positionals)
    if (!p.option.empty()) replace_all(p.option, p.name);
  for (const Flag& f : command.flags) {
    std::string option = f.option.empty() ? f.name : f.option;
    std::replace(option.begin(), option.end(), '-', '_');
    replace_all(option, "--" + f.name);
  }
  return message;
}

int report_error(int code, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", one_line(message).c_str());
  return code;
}

std::string smaller_types(const Arguments& arguments, bool bits) {
  const std::string dtype = arguments.get("dtype"), device = arguments.get("device");
  bits = bits && !device.starts_with("cuda") && parse_device(device) == kCpu;
  if (dtype == "int4" || (dtype == "bf16" && !bits)) return "";
  return dtype == "int8" ? "int4" : dtype == "bf16" ? "int8 or int4" : bits ? "bf16, int8 or int4" : "bf16";
}

static std::vector<std::string> memory_ways(const Command& command, const Arguments& arguments) {
  std::vector<std::string> ways;
  for (const Flag& flag : command.flags) {
    const bool bits = std::ranges::count(flag.rule.choices, "int4") > 0;
    const std::string types = flag.name == "dtype" ? smaller_types(arguments, bits) : "";
    if (!types.empty()) ways.insert(ways.begin(), "--dtype " + types);
    const bool of_memory =
        flag.name == "sequences" || flag.name == "positions" || flag.name == "batch" || flag.name == "tokens";
    const bool unused = flag.name == "sequences" && arguments.get_int("positions") > 0;  // these are the cache then
    if (of_memory && !unused && arguments.get_int(flag.name) != 1) ways.push_back("a smaller --" + flag.name);
  }
  ways.emplace_back("a smaller model");
  return ways;
}

std::string memory_advice(const Command& command, const Arguments& arguments) {
  if (std::ranges::count(command.flags, "dtype", &Flag::name) == 0)
    return command.overrides.empty() ? "; it takes less with a smaller model" : "";
  return "; it takes less with " +
         join(command.memory_ways ? command.memory_ways(arguments) : memory_ways(command, arguments), ", ");
}

Unhandled describe_unhandled(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  for (const std::errc cause : {std::errc::resource_unavailable_try_again, std::errc::too_many_files_open,
                                std::errc::too_many_files_open_in_system, std::errc::not_enough_memory}) {
    if (system && system->code() == cause)
      return {int(ErrorKind::setting), str("the system gives no more threads, open files or memory: ", error.what(),
                                           "; raise the limits that `ulimit -a` shows, or end other programs")};
  }
  return {exit_internal, str("internal error: ", error.what(), "; please report this as a bug")};
}

int run_program(const std::vector<Command>& commands, const std::vector<std::string>& arguments) {
  if (braid::detail::restore_float_mode())
    std::fputs(
        "note: a library that is loaded with this program had switched off subnormal values or exact rounding; "
        "braid has switched them on again\n",
        stderr);
  try {
    const int code = dispatch(commands, arguments);
    // Output that went to a full disk is a failure too.
    const bool flushed = std::fflush(stdout) == 0;
    if (!flushed && code == 0)
      return report_error(int(ErrorKind::output), "cannot write to standard output: " + io::system_message());
    if (std::ferror(stdout) != 0 && code == 0)  // earlier, and errno says something else by now
      return report_error(int(ErrorKind::output), "cannot write to standard output: a part of it could not be written");
    return code;
  } catch (const Error& error) {
    return report_error(int(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return report_error(int(ErrorKind::setting), "out of memory");
  } catch (const std::exception& error) {
    const Unhandled found = describe_unhandled(error);
    return report_error(found.code, found.message);
  } catch (...) {
    return report_error(exit_internal, "internal error: unknown exception; please report this as a bug");
  }
}

}  // namespace braid::apps
