#include "apps/cli/command.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <limits>
#include <new>
#include <system_error>

#include "apps/cli/commands.h"
#include "apps/cli/version.h"
#include "braid/tensor/base/float_mode.h"
#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(command)

using braid::test::run;

static Command sample() {
  return {.name = "cook",
          .summary = "make a meal",
          .positionals = {{.name = "DISH", .help = "what"},
                          {.name = "SIDE", .help = "with", .required = false, .repeated = true}},
          .flags = {{.name = "out", .alias = 'o', .value = "FILE", .help = "where"},
                    integer_flag("heat", "N", "stage", "3", 1, 9),
                    number_flag("salt", "G", "grams", "", 0),
                    {.name = "style",
                     .value = "S",
                     .help = "how",
                     .fallback = "plain",
                     .rule = models::one_of({"plain", "spicy"})},
                    {.name = "add", .value = "X", .help = "more", .repeated = true},
                    integer_flag("range", "A B", "both ends", "", 0, 99),
                    {.name = "fast", .help = "hurry"},
                    {.name = "courses",
                     .value = "[LIST]",
                     .help = "all or some",
                     .rule = {.type = models::ValueType::integers, .min = 0},
                     .alone = "all"}},
          .overrides = "settings of the oven",
          .examples = {"braid cook soup"},
          .run = [](const Arguments&) { return 0; }};
}

static std::string courses(const std::vector<std::string>& arguments) {
  return parse_arguments(sample(), arguments).get("courses");
}

static std::string parse_failure(const std::vector<std::string>& arguments) {
  try {
    parse_arguments(sample(), arguments);
  } catch (const Error& error) {
    BOOST_TEST(int(error.kind()) == 2);
    return error.what();
  }
  return "";
}

BOOST_AUTO_TEST_CASE(options_of_the_library_become_flags) {
  Command command = sample();
  command.positionals[0].option = "dishes";
  command.flags[0].option = "output_file";
  command.flags[1].name = "low-heat";
  BOOST_TEST(
      with_flags(command, "`output_file` needs `dishes`; lower `low_heat`, not `out` or heat, in `output_file`") ==
      "--out needs DISH; lower --low-heat, not `out` or heat, in --out");
}

BOOST_AUTO_TEST_CASE(a_value_may_be_left_out_where_the_table_says_so) {
  BOOST_TEST(courses({"soup"}) == "");
  BOOST_TEST(courses({"soup", "--courses"}) == "all");
  BOOST_TEST(courses({"--courses", "soup"}) == "all");
  BOOST_TEST(courses({"--courses", "--fast", "soup"}) == "all");
  BOOST_TEST(courses({"--courses", "0,2", "soup"}) == "0,2");
  BOOST_TEST(courses({"--courses=1", "soup"}) == "1");
  BOOST_TEST(parse_failure({"soup", "--courses=x"}).find("bad value for --courses") == 0u);
}

BOOST_AUTO_TEST_CASE(reads_all_forms) {
  const Arguments a = parse_arguments(sample(), {"soup", "--out=a=b", "--heat", "7", "bread", "--add", "x", "--add=y",
                                                 "--fast", "oven.fan=true", "rice"});
  BOOST_TEST(a.get("DISH") == "soup");
  BOOST_TEST(a.list("SIDE") == (std::vector<std::string>{"bread", "rice"}), boost::test_tools::per_element());
  BOOST_TEST(a.get("out") == "a=b");
  BOOST_TEST(a.get_int("heat") == 7);
  BOOST_TEST(a.list("add") == (std::vector<std::string>{"x", "y"}), boost::test_tools::per_element());
  BOOST_TEST(a.has("fast"));
  BOOST_TEST(!a.has("style"));
  BOOST_TEST(a.get("style") == "plain");
  BOOST_TEST(a.overrides() == (std::vector<std::string>{"oven.fan=true"}), boost::test_tools::per_element());
  BOOST_TEST(a.line() == "braid cook soup --out=a=b --heat 7 bread --add x --add=y --fast oven.fan=true rice");
}

BOOST_AUTO_TEST_CASE(short_names_negative_values_and_the_end_of_flags) {
  const Arguments a = parse_arguments(sample(), {"-o", "-", "--salt", "1e-3", "--", "--soup", "a=b"});
  BOOST_TEST(a.get("out") == "-");
  BOOST_TEST(a.get_float("salt") == 1e-3);
  BOOST_TEST(a.get("DISH") == "--soup");
  BOOST_TEST(a.get("SIDE") == "a=b");
  BOOST_TEST(parse_arguments(sample(), {"./a=b"}).get("DISH") == "./a=b");  // a path, not a setting
}

BOOST_AUTO_TEST_CASE(a_flag_with_two_values) {
  const Arguments a = parse_arguments(sample(), {"soup", "--range", "3", "14", "bread"});
  BOOST_TEST(a.list("range") == (std::vector<std::string>{"3", "14"}), boost::test_tools::per_element());
  BOOST_TEST(a.get("SIDE") == "bread");
  BOOST_TEST(parse_failure({"soup", "--range", "3"}) ==
             "--range needs 2 values: expected an integer from 0 to 99, found the end of the command");
  BOOST_TEST(parse_failure({"soup", "--range", "3", "--fast"}) ==
             "--range needs 2 values: expected an integer from 0 to 99, found the flag '--fast'");
  BOOST_TEST(parse_failure({"soup", "--range", "3", "bread"}) ==
             "bad value for --range: expected an integer from 0 to 99, found 'bread'");
  BOOST_TEST(parse_failure({"soup", "--range", "3,14"}) ==
             "bad value for --range: expected an integer from 0 to 99, found '3,14'");
  BOOST_TEST(parse_failure({"soup", "--range=3", "14"}) ==
             "--range takes 2 values: write --range A B, found '--range=3'");
  BOOST_TEST(help_text(sample()).find("--range A B") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_setting_typed_as_a_flag_is_named) {
  Command command = sample();
  command.keys = [] { return std::vector<std::string>{"oven.fan", "oven.grill_heat", "oven.fast"}; };
  const auto advice = [&](const std::string& flag) -> std::string {
    try {
      parse_arguments(command, {"soup", flag});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  BOOST_TEST(advice("--fan=2") ==
             "unknown flag '--fan' of braid cook; did you mean the setting oven.fan=VALUE, without dashes? (braid cook "
             "--help lists all)");
  BOOST_TEST(advice("--grill-heat").find("oven.grill_heat=VALUE") != std::string::npos);
  BOOST_TEST(advice("--fastt").find("did you mean '--fast'?") != std::string::npos);
  BOOST_TEST(advice("--zebra").find("did you mean") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong) {
  BOOST_TEST(parse_failure({"soup", "--heta", "3"}) ==
             "unknown flag '--heta' of braid cook; did you mean '--heat'? (braid cook --help lists all)");
  BOOST_TEST(parse_failure({"soup", "--heat", "10"}) ==
             "bad value for --heat: expected an integer from 1 to 9, found '10'");
  BOOST_TEST(parse_failure({"soup", "--heat=2.5"}) ==
             "bad value for --heat: expected an integer from 1 to 9, found '2.5'");
  BOOST_TEST(parse_failure({"soup", "--salt=nan"}) ==
             "bad value for --salt: expected a number of at least 0, found 'nan'");
  BOOST_TEST(parse_failure({"soup", "--salt=inf"}) ==
             "bad value for --salt: expected a number of at least 0, found 'inf'");
  BOOST_TEST(parse_failure({"soup", "--style", "spicey"}) ==
             "bad value for --style: expected one of plain, spicy, found 'spicey'; did you mean 'spicy'?");
  BOOST_TEST(parse_failure({"soup", "--out"}) == "--out needs a value: expected FILE, found the end of the command");
  BOOST_TEST(parse_failure({"soup", "--out", "--fast"}) ==
             "--out needs a value: expected FILE, found the flag '--fast'");
  BOOST_TEST(parse_failure({"soup", "--fast=yes"}) == "--fast is a switch and takes no value, found '--fast=yes'");
  BOOST_TEST(parse_failure({"soup", "--heat=1", "--heat=2"}) == "--heat is given twice; give it once");
  BOOST_TEST(parse_failure({}) == "DISH is missing (what); usage: braid cook DISH [SIDE...] [key=value ...] [flags]");
  Command strict = sample();
  strict.flags[0].required = true;
  BRAID_CHECK_FAILS(parse_arguments(strict, {"soup"}), ErrorKind::setting,
                    "--out is missing (where); usage: braid cook DISH");
  strict.flags[0].required = false;
  strict.positionals.pop_back();
  strict.overrides = "";
  BRAID_CHECK_FAILS(parse_arguments(strict, {"soup", "a=b"}), ErrorKind::setting, "argument 'a=b' is one too many");
}

BOOST_AUTO_TEST_CASE(names_outside_the_table_are_bugs) {
  const Arguments a = parse_arguments(sample(), {"soup"});
  BRAID_CHECK_FAILS(a.get("heta"), ErrorKind::misuse, "no 'heta'");
  BRAID_CHECK_FAILS(a.get_float("salt"), ErrorKind::misuse, "--salt has no number");
}

BOOST_AUTO_TEST_CASE(help_shows_every_row_of_the_table) {
  const std::string help = help_text(sample());
  for (const char* part :
       {"usage: braid cook DISH [SIDE...] [key=value ...] [flags]", "-o, --out FILE", "--heat N", "stage [3]",
        "how: plain, spicy [plain]", "more (may be repeated)", "settings of the oven", "-h, --help", "braid cook soup"})
    BOOST_TEST(help.find(part) != std::string::npos, part);
  BOOST_TEST(parse_arguments(sample(), {"--help", "--no-such"}).wants_help());
}

// Every exception becomes one line and one code.
BOOST_AUTO_TEST_CASE(exceptions_become_exit_codes) {
  const auto code_of = [](int (*body)(const Arguments&)) {
    return run_program({{.name = "x", .summary = "", .run = body}}, {"x"});
  };
  BOOST_TEST(code_of([](const Arguments&) { return 0; }) == 0);
  BOOST_TEST(code_of([](const Arguments&) { return exit_stopped; }) == 75);
  BOOST_TEST(code_of([](const Arguments&) -> int { fail(ErrorKind::input, "two\nlines"); }) == 3);
  BOOST_TEST(code_of([](const Arguments&) -> int { fail(ErrorKind::numerical, "NaN"); }) == 5);
  BOOST_TEST(code_of([](const Arguments&) -> int { fail("matmul", "sizes"); }) == 70);
  BOOST_TEST(code_of([](const Arguments&) -> int { throw std::bad_alloc(); }) == 2);
  BOOST_TEST(code_of([](const Arguments&) -> int { throw std::runtime_error("x"); }) == 70);
  BOOST_TEST(code_of([](const Arguments&) -> int {
               throw std::system_error(EAGAIN, std::generic_category());  // as std::thread throws it
             }) == 2);
  BOOST_TEST(code_of([](const Arguments&) -> int { throw std::system_error(EBADF, std::generic_category()); }) == 70);
  BOOST_TEST(code_of([](const Arguments&) -> int { throw 1; }) == 70);
}

BOOST_AUTO_TEST_CASE(advice_on_memory_names_flags_that_the_command_has) {
  const auto advice = [](const Command& command, const std::vector<std::string>& words) {
    return memory_advice(command, parse_arguments(command, words));
  };
  const std::string serve = advice(serve_command(), {"m", "--device", "cpu"});
  BOOST_TEST(
      serve.find("--dtype bf16, int8 or int4, a smaller --sequences, a smaller --positions") != std::string::npos,
      serve);
  BOOST_TEST(advice(dump_command(), {"m"}) == "; it takes less with --dtype bf16, a smaller model");
  BOOST_TEST(advice(dump_command(), {"m", "--dtype", "bf16"}) == "; it takes less with a smaller model");
  BOOST_TEST(advice(train_command(), {}) == "");
  // A number of 1 is not lowered, --batch of generate is for --prompts, and 8 and 4 bits are for the CPU.
  BOOST_TEST(advice(serve_command(), {"m", "--sequences", "1"}).find("--sequences") == std::string::npos);
  BOOST_TEST(advice(serve_command(), {"m", "--positions", "64"}).find("--sequences") == std::string::npos);
  const auto of_generate = [&](const std::vector<std::string>& words) { return advice(generate_command(), words); };
  BOOST_TEST(of_generate({"m", "--device", "cpu", "-p", "x"}) ==
             "; it takes less with --dtype bf16, int8 or int4, a smaller --tokens, a smaller model");
  BOOST_TEST(of_generate({"m", "--device", "cpu", "--prompts", "x", "--dtype", "int8"}) ==
             "; it takes less with --dtype int4, a smaller --batch, a smaller --tokens, a smaller model");
  BOOST_TEST(of_generate({"m", "--device", "cuda", "--prompts", "x", "--batch", "1"}) ==
             "; it takes less with --dtype bf16, a smaller --tokens, a smaller model");
  BOOST_TEST(of_generate({"m", "--device", "cuda:1", "--tokens", "1", "--dtype", "bf16"}) ==
             "; it takes less with a smaller model");
  BOOST_TEST(advice(eval_command(), {"m", "recall", "--batch", "1", "--dtype", "int4"}) ==
             "; it takes less with a smaller model");
  // bench names what its call does not have yet.
  const auto of_bench = [&](const std::vector<std::string>& words) { return advice(bench_command(), words); };
  BOOST_TEST(of_bench({}) ==
             "; it takes less with --recompute, --dtype bf16, a smaller --batch, a smaller --seq-len, a smaller model");
  BOOST_TEST(of_bench({"step", "--recompute", "--dtype", "bf16", "--batch", "1"}) ==
             "; it takes less with a smaller --seq-len, a smaller model");
  BOOST_TEST(of_bench({"step", "--preset", "dc-vit-28"}) ==
             "; it takes less with --recompute, --dtype bf16, a smaller --batch, a smaller model");
  BOOST_TEST(of_bench({"comm"}) ==
             "; it takes less with a smaller --megabytes, a smaller --batch, a smaller --seq-len, a smaller model");
  const std::string decode = "; it takes less with --dtype ", rest = "a smaller --context, a smaller model";
  BOOST_TEST(of_bench({"decode", "--device", "cpu"}) == decode + "bf16, int8 or int4, " + rest);
  BOOST_TEST(of_bench({"decode", "--device", "cpu", "--dtype", "bf16", "--batch", "2"}) ==
             decode + "int8 or int4, a smaller --batch, " + rest);
  BOOST_TEST(of_bench({"decode", "--device", "cpu", "--dtype", "int4"}) == "; it takes less with " + rest);
  BOOST_TEST(of_bench({"decode", "--device", "cuda"}) == decode + "bf16, " + rest);
  // Such an error of a command gets it.
  Command command = generate_command();
  command.run = [](const Arguments&) -> int { throw OutOfMemory("out of memory: x"); };
  BOOST_TEST(run_program({command}, {"generate", "m", "--prompt", "x"}) == 2);
}

// As a library does that was built with -ffast-math and loaded with the program.
BOOST_AUTO_TEST_CASE(flush_to_zero_is_switched_off_at_the_start) {
#if defined(__x86_64__)
  Command command = sample();
  command.run = [](const Arguments&) {
    const volatile double smallest = std::numeric_limits<double>::min();
    return smallest / 2 > 0 ? 17 : 18;
  };
  detail::set_float_mode(0x8040);
  BOOST_TEST(run_program({command}, {"cook", "soup"}) == 17);
  BOOST_TEST(detail::float_mode() == 0u);
#endif
}

BOOST_AUTO_TEST_CASE(the_program_lists_commands) {
  for (const char* arguments : {"", "--help", "-h", "help"}) {
    const auto result = run(arguments);
    BOOST_TEST(result.code == 0);
    BOOST_TEST(result.output.find("\n  plot  ") != std::string::npos);
    BOOST_TEST(result.output.find("75 stopped on request") != std::string::npos);
  }
  const std::string version = run("--version").output;
  BOOST_TEST(version.starts_with("braid 0."));
  for (const char* fact : {"\ncommit     ", "\nbackends   CPU", "\ncompiler   ", "\nprocessor  "})
    BOOST_TEST(version.find(fact) != std::string::npos, version);
  const std::string fewest = run("--version", "BRAID_INSTRUCTIONS=portable ").output;
  BOOST_TEST((fewest.ends_with("; kernels: portable\n") || fewest.ends_with("; kernels: native\n")), fewest);
  const auto unknown_set = run("--version", "BRAID_INSTRUCTIONS=sse ");
  BOOST_TEST(unknown_set.code == 2);
  BOOST_TEST(unknown_set.output.find("expected portable, avx2, avx512 or amx, found sse") != std::string::npos);
  const auto pinned = run("bench --steps 1 --batch 1 --seq-len 8", "BRAID_PIN_THREADS=yes ");
  BOOST_TEST(pinned.code == 2);
  BOOST_TEST(pinned.output.find("BRAID_PIN_THREADS: expected 0 or 1, found yes") != std::string::npos, pinned.output);
  BOOST_TEST(run("bench --steps 1 --batch 1 --seq-len 8", "BRAID_PIN_THREADS=1 ").code == 0);
  BOOST_TEST(time_text(1e9 + 86400 * 365).starts_with("2002-09-0"));  // in every time zone
  BOOST_TEST(time_text(0).size() == std::string("1970-01-01T00:00:00+00:00").size());
  BOOST_TEST(run("help plot").output == run("plot --help").output);
  BOOST_TEST(run("plot --help").code == 0);
  const std::string second = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 ";  // of a job
  for (const char* arguments : {"--help", "plot --help", "info dcformer-tiny", "bench decode", "plott"})
    BOOST_TEST(run(arguments, second).output == "", arguments);
}

BOOST_AUTO_TEST_CASE(the_program_answers_mistakes_with_one_line) {
  const auto unknown = run("plott");
  BOOST_TEST(unknown.code == 2);
  BOOST_TEST(unknown.output.starts_with("error: unknown command 'plott'; did you mean 'plot'?"));
  BOOST_TEST(std::count(unknown.output.begin(), unknown.output.end(), '\n') == 1);
  BOOST_TEST(run("--frobnicate").code == 2);
  BOOST_TEST(run("plot").code == 2);
  BOOST_TEST(run("plot --help > /dev/full").code == 4);
}

BOOST_AUTO_TEST_SUITE_END()
