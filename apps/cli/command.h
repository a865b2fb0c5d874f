// Sub-commands as data: one table per command from which parsing, checks and --help are made.
//
//   Command plot_command() {
//     return {.name = "plot", .summary = "loss curves of one or several runs as SVG",
//             .positionals = {{.name = "RUN", .help = "run folder or log.csv", .repeated = true}},
//             .flags = {{.name = "out", .alias = 'o', .value = "FILE", .help = "the chart"}},
//             .examples = {"braid plot out/run"}, .run = run_plot};
//   }
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "braid/models/settings.h"

namespace braid::apps {

struct Flag {
  std::string name;             // without dashes
  char alias = 0;               // -o
  std::string value = "";       // what --help calls the value, for example "FILE"; "P N": two values; empty: a switch
  std::string help = "";        // one line
  std::string fallback = "";    // value when not given, shown by --help; empty: none
  models::ValueRule rule = {};  // allowed values; by default any text
  bool repeated = false;        // may be given several times
  bool required = false;        // must be given
  std::string alone = "";       // value of the flag without one; empty: a value is needed
  std::string option = "";      // the library's name of what it sets; empty: its own, with _ for -
};

inline Flag value_flag(std::string name, std::string value, std::string help, std::string fallback = "",
                       models::ValueRule rule = {}) {
  return {name, 0, value, help, fallback, rule};
}
// Flags whose values are numbers from min to max.
inline constexpr double unlimited = std::numeric_limits<double>::infinity();
inline Flag integer_flag(std::string name, std::string value, std::string help, std::string fallback, double min,
                         double max = unlimited, char alias = 0) {
  return {name, alias, value, help, fallback, {.type = models::ValueType::integer, .min = min, .max = max}};
}
inline Flag number_flag(std::string name, std::string value, std::string help, std::string fallback, double min,
                        double max = unlimited, char alias = 0) {
  return {name, alias, value, help, fallback, models::between(min, max)};
}

struct Positional {
  std::string name;  // upper case, as in the usage line
  std::string help = "";
  bool required = true;
  bool repeated = false;                  // takes the rest; only for the last one
  std::string option = "";                // as that of a flag
  std::vector<std::string> choices = {};  // allowed values; empty: any
};

// The arguments of a command line, checked against the table. Names that are not in the table are a bug: Error(misuse).
class Arguments {
 public:
  bool has(const std::string& name) const;                       // given on the command line
  std::string get(const std::string& name) const;                // its value, the fallback, or ""
  int64_t get_int(const std::string& name) const;                // flag of type integer with value or fallback
  double get_float(const std::string& name) const;               // flag of type number with value or fallback
  std::vector<std::string> list(const std::string& name) const;  // every value, in order (flags and positionals)
  const std::vector<std::string>& overrides() const { return overrides_; }  // key=value arguments, in order
  const std::string& line() const { return line_; }                         // the command as typed, quoted for a shell
  bool wants_help() const { return help_; }

 private:
  friend Arguments parse_arguments(const struct Command&, const std::vector<std::string>&);
  std::map<std::string, std::vector<std::string>> values_;  // every name of the table
  std::map<std::string, std::string> fallbacks_;
  std::vector<std::string> overrides_;
  std::string line_;
  bool help_ = false;
};

struct Command {
  std::string name;
  std::string summary;  // one line, lower case, no full stop
  std::vector<Positional> positionals = {};
  std::vector<Flag> flags = {};
  std::string overrides = "";                    // help for key=value arguments; empty: not accepted
  std::vector<std::string> (*keys)() = nullptr;  // of these arguments, for advice on unknown flags
  std::string details = "";                      // paragraphs after the tables
  std::vector<std::string> examples = {};
  int (*run)(const Arguments&) = nullptr;  // returns the exit code: 0, or 75 when stopped on request
  // What takes less memory, where flags are for some uses of the command alone; none: what its flags say.
  std::vector<std::string> (*memory_ways)(const Arguments&) = nullptr;
  // Whether the processes of a job share the work; otherwise the first one does it and the others end at once.
  bool (*shared)(const Arguments&) = [](const Arguments&) { return false; };
};

// `arguments` without the command's name. Error(setting) names the flag, what was expected and the nearest name.
Arguments parse_arguments(const Command& command, const std::vector<std::string>& arguments);
// A message of the library, which writes its options as `val_fraction`, with the flags of the command in their places.
std::string with_flags(const Command& command, std::string message);
// "bf16, int8 or int4": the types that take less than --dtype; "": none. bits: whether weights may have 8 and 4, which
// is for a --device that is the CPU.
std::string smaller_types(const Arguments& arguments, bool bits);
// "; it takes less with ...": what to do where memory ran out, by the flags that the command has and by those of this
// call. Empty for training, which knows more by itself.
std::string memory_advice(const Command& command, const Arguments& arguments);
std::string help_text(const Command& command);
std::string help_text(const std::vector<Command>& commands);

// The whole program: finds the command, parses, runs. Every exception becomes one line on stderr and an exit code.
int run_program(const std::vector<Command>& commands, const std::vector<std::string>& arguments);

// Prints the one line on stderr that every failure ends with. Returns code.
int report_error(int code, const std::string& message);

// What to say of an error of the system that no code handles: that it gives no more threads, open files or memory
// (code 2), or that it is a bug (exit_internal).
struct Unhandled {
  int code;
  std::string message;
};
Unhandled describe_unhandled(const std::exception& error);

inline constexpr int exit_stopped = 75;   // stopped on request, state saved
inline constexpr int exit_internal = 70;  // a bug, or memory that could not be had

}  // namespace braid::apps
