#include "apps/cli/config.h"

#include <boost/test/unit_test.hpp>

#include "apps/train/config/train_config.h"
#include "apps/train/task/from_config.h"
#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(config)

using braid::test::Scratch;
using braid::test::write;

static const std::vector<models::ModelSetting> model_keys = {
    {.name = "n_head", .help = "heads", .rule = {.type = models::ValueType::integer, .min = 1}},
    {.name = "dim", .help = "width", .rule = {.type = models::ValueType::integer, .min = 1}},
    {.name = "head_dim", .help = "of a head", .rule = {.type = models::ValueType::integer, .min = 1, .nullable = true}},
    {.name = "window_type", .help = "pattern"},
    {.name = "windows", .help = "all", .rule = {.type = models::ValueType::integers, .min = 1, .nullable = true}},
    {.name = "profile.gelu", .help = "kind", .rule = one_of({"erf", "tanh"})},
};

// Loads text into a fresh configuration; the error's text otherwise.
static std::string load_failure(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const Scratch scratch;
  write(scratch / "run.toml", text);
  TrainConfig config;
  try {
    load_config(train_schema(config, model_keys), scratch / "run.toml", overrides);
  } catch (const Error& error) {
    BOOST_TEST(int(error.kind()) == 2);
    std::string message = error.what();  // without the folder, which differs from run to run
    const std::string folder = scratch.path.string() + "/";
    if (const size_t at = message.find(folder); at != std::string::npos) message.erase(at, folder.size());
    return message;
  }
  return "";
}

// config.toml of a checkpoint that an earlier version wrote.
BOOST_AUTO_TEST_CASE(names_of_earlier_versions_are_read) {
  for (const bool in_file : {true, false}) {
    const Scratch scratch;
    write(scratch / "run.toml", in_file ? "[train]\ncheckpoint_activations = true\n" : "");
    TrainConfig config;
    const Schema schema = train_schema(config, model_keys);
    load_config(schema, scratch / "run.toml",
                in_file ? std::vector<std::string>{} : std::vector<std::string>{"train.checkpoint_activations=true"});
    BOOST_TEST(config.train.recompute);
    BOOST_TEST(print_config(schema).find("checkpoint_activations") == std::string::npos);
  }
  BOOST_TEST(load_failure("[train]\ncheckpoint_activations = 3\n", {}).find("train.recompute in ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(overrides_beat_the_file_and_the_file_beats_defaults) {
  const Scratch scratch;
  write(scratch / "run.toml",
        "[train]\nsteps = 50\nbatch_size = 4\n[optimizer]\nlr = 1\n[model]\npreset = \"tiny\"\nn_head = 4\n"
        "[model.profile]\ngelu = \"tanh\"\n");
  TrainConfig config;
  load_config(train_schema(config, model_keys), scratch / "run.toml",
              {"train.steps=60", "train.steps=70", "model.dim=128", "model.window_type=\"LG\"", "run.out=a=b",
               "train.recompute=true"});
  BOOST_TEST(config.train.steps == 70);
  BOOST_TEST(config.train.batch_size == 4);
  BOOST_TEST(config.train.accumulate == 1);
  BOOST_TEST(config.train.recompute);
  BOOST_TEST(config.optimizer.lr == 1.0);  // an integer is a float where a float is expected
  BOOST_TEST(config.run.out == "a=b");
  BOOST_TEST(config.model.preset == "tiny");
  BOOST_TEST(config.model.values.size() == 4u);
  BOOST_TEST(std::get<int64_t>(config.model.values.at("n_head")) == 4);
  BOOST_TEST(std::get<int64_t>(config.model.values.at("dim")) == 128);
  BOOST_TEST(std::get<std::string>(config.model.values.at("window_type")) == "LG");
  BOOST_TEST(std::get<std::string>(config.model.values.at("profile.gelu")) == "tanh");
}

// Another preset on the command line drops the values of the file's section; those on the command line stay.
BOOST_AUTO_TEST_CASE(a_preset_on_the_command_line_replaces_the_section_of_the_file) {
  const Scratch scratch;
  write(scratch / "run.toml",
        "[model]\npreset = \"tiny\"\ndim = 512\nwindow_type = \"LG\"\n[model.profile]\ngelu = \"tanh\"\n");
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{"model.preset=large", "model.n_head=4"}, {"model.n_head=4", "model.preset=large"}}) {
    TrainConfig config;
    const auto notes = load_config(train_schema(config, model_keys), scratch / "run.toml", given);
    BOOST_TEST(config.model.preset == "large");
    BOOST_TEST(config.model.values.size() == 1u);
    BOOST_TEST(config.model.values.contains("n_head"));
    BOOST_REQUIRE(notes.size() == 1u);
    BOOST_TEST(notes[0] ==
               "model.preset=large replaces model.dim=512, model.profile.gelu=tanh, model.window_type=LG of " +
                   (scratch / "run.toml").string() + "; give one too to keep it");
  }
  TrainConfig same;
  BOOST_TEST(load_config(train_schema(same, model_keys), scratch / "run.toml", {"model.preset="}).empty());
  BOOST_TEST(same.model.values.size() == 3u);
}

BOOST_AUTO_TEST_CASE(values_of_the_model_have_the_type_of_their_key) {
  BOOST_TEST(load_failure("[model]\ndim = \"64\"\n") ==
             "bad value for model.dim in run.toml line 2: expected an integer of at least 1, found \"64\"");
  BOOST_TEST(load_failure("", {"model.dim=\"64\""}) ==
             "bad value for model.dim in the command line: expected an integer of at least 1, found \"64\"");
  BOOST_TEST(load_failure("[model]\ndim = 0\n").find("of at least 1, found 0") != std::string::npos);
  BOOST_TEST(load_failure("[model]\ndim = \"null\"\n").find("found \"null\"") != std::string::npos);
  BOOST_TEST(load_failure("[model.profile]\ngelu = \"tahn\"\n").find("did you mean 'tanh'?") != std::string::npos);
  for (const char* text : {"head_dim = \"null\"", "windows = [8, 9]", "windows = \"8,null\"",
                           "windows = [\"8\", \"null\"]", "windows = 8"})
    BOOST_TEST(load_failure("[model]\n" + std::string(text)) == "", text);
}

BOOST_AUTO_TEST_CASE(unknown_keys_name_the_nearest) {
  BOOST_TEST(load_failure("", {"train.lr=1"}) ==
             "unknown key 'train.lr' in the command line; did you mean 'optimizer.lr'?");
  BOOST_TEST(load_failure("", {"model.gelu=erf"}) ==
             "unknown key 'model.gelu' in the command line; did you mean 'model.profile.gelu'?");
  BOOST_TEST(load_failure("[train]\n\nstep = 5\n") ==
             "unknown key 'train.step' in run.toml line 3; did you mean 'train.steps'?");
  BOOST_TEST(load_failure("lr = 5\n") == "unknown key 'lr' in run.toml line 1; did you mean 'optimizer.lr'?");
  BOOST_TEST(load_failure("[model]\nnhead = 5\n") ==
             "unknown key 'model.nhead' in run.toml line 2; did you mean 'model.n_head'?");
  BOOST_TEST(load_failure("train = 5\n") ==
             "unknown key 'train' in run.toml line 1; it is a section: write '[train]' and its keys below");
  BOOST_TEST(load_failure("[train]\n[optimzer]\n") ==
             "unknown section 'optimzer' in run.toml line 2; did you mean 'optimizer'?");
  BOOST_TEST(load_failure("[model.profile]\n[optimizer]\n").empty());  // sections without keys
  BOOST_TEST(load_failure("", {"zebra.crossing=5"}) ==
             "unknown key 'zebra.crossing' in the command line; braid train --print-config lists all keys");
}

BOOST_AUTO_TEST_CASE(wrong_values_name_key_place_and_what_is_allowed) {
  BOOST_TEST(
      load_failure("[train]\nsteps = \"ten\"\n") ==
      "bad value for train.steps in run.toml line 2: expected an integer from 1 to 1000000000000, found \"ten\"");
  BOOST_TEST(load_failure("[train]\nsteps = 10.5\n") ==
             "bad value for train.steps in run.toml line 2: expected an integer from 1 to 1000000000000, found 10.5");
  BOOST_TEST(load_failure("", {"train.steps=0"}) ==
             "bad value for train.steps in the command line: expected an integer from 1 to 1000000000000, found 0");
  BOOST_TEST(load_failure("[optimizer]\nlr = 0\n") ==
             "bad value for optimizer.lr in run.toml line 2: expected a number above 0, found 0");
  BOOST_TEST(load_failure("[optimizer]\nlr = nan\n") ==
             "bad value for optimizer.lr in run.toml line 2: expected a number above 0, found nan");
  BOOST_TEST(load_failure("[optimizer]\nlr = inf\n") ==
             "bad value for optimizer.lr in run.toml line 2: expected a number above 0, found inf");
  BOOST_TEST(load_failure("[optimizer]\nbeta1 = 1\n") ==
             "bad value for optimizer.beta1 in run.toml line 2: expected a number from 0 to below 1, found 1");
  BOOST_TEST(
      load_failure("[optimizer]\nname = \"adamv\"\n") ==
      "bad value for optimizer.name in run.toml line 2: expected one of adamw, adam, muon, sgd, found \"adamv\"; did "
      "you mean 'adamw'?");
  BOOST_TEST(load_failure("", {"train.recompute=maybe"}) ==
             "bad value for train.recompute in the command line: expected true or false, found \"maybe\"");
  BOOST_TEST(load_failure("[run]\ndevice = \"gpu\"\n") ==
             "bad value for run.device in run.toml line 2: expected auto, cpu, cuda or cuda:N, found \"gpu\"");
  BOOST_TEST(load_failure("[run]\ndevice = \"cuda:-1\"\n") != "");
  BOOST_TEST(load_failure("[run]\ndevice = \"cuda:1\"\n") == "");
  BOOST_TEST(load_failure("[run]\ndevice = \"cuda\"\n") == "");
  BOOST_TEST(load_failure("[checkpoint]\nkeep = 1\n").find("from 2 to") != std::string::npos);
  BOOST_TEST(
      load_failure("[run]\nseed = 2024-01-01\n") ==
      "bad value for run.seed in run.toml line 2: expected a number, a string, true, false or a list, found a date "
      "or time");
  BOOST_TEST(load_failure("[model]\ndim = [1, \"a\"]\n") ==
             "bad value for model.dim in run.toml line 2: expected a list of only integers or only strings, found a "
             "mixed one");
  BOOST_TEST(load_failure("[model]\ndim = [1, 0.01]\n") ==
             "bad value for model.dim in run.toml line 2: expected a list of only integers or only strings, found 0.01 "
             "in it; as a string it is \"0.01\"");
  BOOST_TEST(load_failure("[model]\ndim = [1.0, 2]\n").ends_with(", found 1.0 in it; as a string it is \"1.0\""));
  BOOST_TEST(load_failure("[model]\ndim = [1e30, 2]\n").ends_with(", found 1e+30 in it; as a string it is \"1e+30\""));
  BOOST_TEST(load_failure("[model]\ndim = [true]\n").ends_with("only strings, found true in it"));
  BOOST_TEST(load_failure("[run]\nout = \"a\\u0000b\"\n").find("expected a string without U+0000") !=
             std::string::npos);
  BOOST_TEST(load_failure("", {"train.steps"}) == "bad override 'train.steps': expected key=value");
  BOOST_TEST(load_failure("", {"sample.prompt=\xFF"}) ==
             "bad override 'sample.prompt=?': expected UTF-8 text, found other bytes");
}

BOOST_AUTO_TEST_CASE(files_that_are_no_toml) {
  BOOST_TEST(load_failure("[train]\nsteps = \n").starts_with("cannot read run.toml line 2: expected TOML; "));
  BOOST_TEST(
      load_failure("[train]\nsteps = 1\nsteps = 2\n").starts_with("cannot read run.toml line 3: expected TOML; "));
  BOOST_TEST(load_failure(std::string("\0\1\2", 3)).starts_with("cannot read run.toml line 1: expected TOML; "));
  BOOST_TEST(
      load_failure("a = " + std::string(100000, '[')).starts_with("cannot read run.toml line 1: expected TOML; "));
  // Keys of very many levels, wherever a key may stand; dots elsewhere are none.
  std::string deep = "a";
  for (int i = 0; i < 20000; ++i) deep += ".a";
  for (const std::string& text : {deep + " = 1", "\n[" + deep + "]\n", "\nb = {c = 1, " + deep + " = 1}\n"})
    BOOST_TEST(load_failure(text).starts_with("cannot read run.toml line " + std::to_string(1 + (text[0] == '\n')) +
                                              ": expected keys of at most 32 levels, found more"));
  std::string nested = "b = ";
  for (int i = 0; i < 40; ++i) nested += "{a = ";
  BOOST_TEST(load_failure(nested + "1" + std::string(40, '}')).find("at most 32 levels") != std::string::npos);
  const std::string dots(100, '.');
  BOOST_TEST(load_failure("# " + dots + "\n[sample]\nprompt = \"\"\"\\\"" + dots + "\n" + dots + "\"\"\" # '\n") == "");
  BOOST_TEST(load_failure("[sample]\nprompt = '" + dots + "\\'\n") == "");
  TrainConfig config;
  const Schema schema = train_schema(config, model_keys);
  const Scratch scratch;
  BRAID_CHECK_FAILS(load_config(schema, scratch / "none.toml", {}), ErrorKind::input,
                    "none.toml: No such file or directory");
  BRAID_CHECK_FAILS(load_config(schema, scratch.path, {}), ErrorKind::input, "expected a file, found a folder");
  write(scratch / "big.toml", std::string((1 << 20) + 1, ' '));
  BRAID_CHECK_FAILS(load_config(schema, scratch / "big.toml", {}), ErrorKind::input, "expected at most 1048576 bytes");
}

BOOST_AUTO_TEST_CASE(the_printed_file_loads_back_to_the_same_values) {
  TrainConfig before;
  const Schema schema = train_schema(before, model_keys);
  load_config(schema, "",
              {"optimizer.lr=0.1", "optimizer.eps=1e-300", "optimizer.weight_decay=0.3333333333333333",
               "sample.prompt=say \"hi\"\\\n\ttab\x01 \xC3\xA9 # no comment", "run.seed=9007199254740992",
               "model.n_head=12", "model.profile.gelu=tanh", "train.recompute=true"});
  const std::string text = print_config(schema);
  const Scratch scratch;
  write(scratch / "printed.toml", text);
  TrainConfig after;
  const Schema loaded = train_schema(after, model_keys);
  load_config(loaded, scratch / "printed.toml", {});
  BOOST_TEST(differences(schema, loaded).empty());
  BOOST_TEST(print_config(loaded) == text);
  BOOST_TEST(after.optimizer.lr == 0.1);
  BOOST_TEST(after.optimizer.eps == 1e-300);
  BOOST_TEST(after.sample.prompt == before.sample.prompt);
  BOOST_TEST(std::get<std::string>(after.model.values.at("profile.gelu")) == "tanh");
  BOOST_TEST(after.model.values.count("dim") == 0u);
  // Every setting is there with its meaning.
  for (const Setting& setting : schema.settings) BOOST_TEST(text.find(setting.help) != std::string::npos, setting.name);
  BOOST_TEST(text.find("# dim = ") != std::string::npos);

  // Values that follow from the given ones stand in comments, with their meaning and range.
  std::vector<models::ModelSetting> in_effect = model_keys;
  const std::vector<std::string> values = {"12", "768", "null", "", "8,null", "tanh"};
  for (size_t i = 0; i < values.size(); ++i) in_effect[i].value = values[i];
  const std::string resolved = print_config(schema, in_effect);
  for (const char* line :
       {"\nn_head = 12           # heads; an integer of at least 1\n",
        "\n# dim = 768           # width; an integer of at least 1; not given\n",
        "\n# head_dim = \"null\"   # of a head; an integer of at least 1, or null; not given\n",
        "\n# window_type =       # pattern; not set\n", "\n# windows = \"8,null\"  # all; a list of"})
    BOOST_TEST(resolved.find(line) != std::string::npos, resolved);
  write(scratch / "resolved.toml", resolved);
  TrainConfig again;
  const Schema reloaded = train_schema(again, model_keys);
  load_config(reloaded, scratch / "resolved.toml", {});
  BOOST_TEST(differences(schema, reloaded).empty());
  BOOST_TEST(again.model.values.size() == 2u);
}

BOOST_AUTO_TEST_CASE(names_of_other_programs_are_known) {
  TrainConfig config;
  const Schema schema = train_schema(config, model_keys);
  for (const auto& [text, advice] : {std::pair{"train.max_steps=3", "here it is train.steps"},
                                     {"learning_rate=1", "here it is optimizer.lr"},
                                     {"early_stopping.patience=3", "here it is eval.patience"}})
    BRAID_CHECK_FAILS(load_config(schema, "", {text}), ErrorKind::setting, advice);
  for (const auto& [name, here] : schema.other_names)  // every one leads to a setting
    BOOST_TEST((here.starts_with("model.") || models::find_setting(schema.settings, here)), name);
}

BOOST_AUTO_TEST_CASE(a_setting_of_earlier_versions_becomes_the_one_that_replaced_it) {
  const Scratch scratch;
  write(scratch / "old.toml", "[eval]\nbatches = 3\n[train]\nbatch_size = 5\n");  // the value that it needs follows it
  TrainConfig config;
  const Schema schema = train_schema(config, model_keys);
  const std::vector<std::string> notes = load_config(schema, scratch / "old.toml", {});
  BOOST_TEST(config.eval.samples == 15);
  BOOST_TEST(notes.size() == 1u);
  BOOST_TEST(notes.at(0).find("eval.samples = 15") != std::string::npos);
  BOOST_TEST(print_config(schema).find("\nbatches") == std::string::npos);
  load_config(schema, "", {"eval.batches=0"});
  BOOST_TEST(config.eval.samples == 0);  // the whole split
  BRAID_CHECK_FAILS(load_config(schema, "", {"eval.batches=-3"}), ErrorKind::setting, "bad value for eval.batches");
}

BOOST_AUTO_TEST_CASE(lists) {
  std::vector<int64_t> sizes = {1};
  std::vector<std::string> names;
  const Schema schema{.title = "t",
                      .command = "braid x",
                      .settings = {{"a.sizes", &sizes, "sizes", at_least(0)}, {"a.names", &names, "names"}}};
  load_config(schema, "", {"a.sizes=[3, 4]", "a.names=b, 5"});
  BOOST_TEST(sizes == (std::vector<int64_t>{3, 4}), boost::test_tools::per_element());
  BOOST_TEST(names == (std::vector<std::string>{"b", "5"}), boost::test_tools::per_element());
  const Scratch scratch;
  write(scratch / "a.toml", "[a]\nsizes = []\nnames = []\n");
  load_config(schema, scratch / "a.toml", {});
  BOOST_TEST(sizes.empty());
  BOOST_TEST(names.empty());
  BOOST_TEST(print_config(schema) ==
             "# t\n\n[a]\nsizes = []  # sizes; a list of integers of at least 0\nnames = []  # names\n");
  BRAID_CHECK_FAILS(load_config(schema, "", {"a.sizes=1,-2"}), ErrorKind::setting,
                    "expected a list of integers of at least 0, found [1, -2]");
}

BOOST_AUTO_TEST_CASE(differences_name_what_changed) {
  TrainConfig a, b;
  const Schema before = train_schema(a, model_keys), after = train_schema(b, model_keys);
  BOOST_TEST(differences(before, after).empty());
  b.run.out = "x";  // the first setting
  b.optimizer.lr = 0.5;
  b.model.values["dim"] = int64_t{64};
  BOOST_TEST(differences(before, after) ==
                 (std::vector<std::string>{"run.out: \"out/run\" -> \"x\"", "optimizer.lr: 0.001 -> 0.5",
                                           "model.dim: not set -> 64"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(settings_that_must_fit_each_other) {
  TrainConfig config;
  config.schedule.name = "wsd", config.train.steps = config.schedule.warmup = 24;  // leaves no step for the decay
  BOOST_TEST(nn::learning_rate(schedule(config), 12) == config.optimizer.lr / 2);
  BOOST_TEST(nn::learning_rate(schedule(config), 23) > 0.9 * config.optimizer.lr);
  config = {};
  BRAID_CHECK_FAILS(check_together(config), ErrorKind::setting, "data.path is not set");
  config.data.path = "data";
  check_together(config);
  config.schedule.warmup = 2000;
  BRAID_CHECK_FAILS(check_together(config), ErrorKind::setting, "expected at most train.steps = 1000, found 2000");
  config.schedule.warmup = 0;
  config.train.batch_size = config.train.accumulate = 1'000'000'000'000;
  BRAID_CHECK_FAILS(check_together(config), ErrorKind::setting, "is too large");
}

BOOST_AUTO_TEST_SUITE_END()
