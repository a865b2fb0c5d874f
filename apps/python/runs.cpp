// Training runs: their data, training with a callback, the log as columns.
#include <cmath>

#include "apps/cli/command.h"
#include "apps/cli/model_flags.h"
#include "apps/python/bindings.h"
#include "apps/train/train.h"
#include "braid/models/data/prepare/prepare.h"
#include "braid/models/registry.h"

namespace braid::python {

namespace {

Facts row_dict(const apps::LogRow& row) {
  Facts values;
  values["step"] = row.step;
  for (const apps::LogColumn& column : apps::log_columns)
    if (const double value = row[apps::LogName(column)]; !std::isnan(value))
      values[nb::str(column.name.data(), column.name.size())] = value;
  for (const auto& [name, value] : row.sources)
    if (!std::isnan(value)) values[name.c_str()] = value;
  return values;
}

// Trains the run of these settings and returns its folder. on_step(row) after each step; false ends the run.
std::string train(const std::string& file, const std::vector<std::string>& overrides, nb::object on_step) {
  apps::TrainConfig config;
  const apps::Schema schema = apps::train_schema(config, models::model_settings());
  apps::print_notes(apps::read_train_settings(config, schema, file, overrides));
  std::exception_ptr error;  // of on_step; the state is saved before it goes on
  bool ended = false;
  const apps::RowObserver observe = [&](const apps::LogRow& row) {
    const nb::gil_scoped_acquire locked;
    try {
      ended = !on_step.is_none() && on_step(row_dict(row)).ptr() == Py_False;
    } catch (...) {
      error = std::current_exception();
    }
    return !ended && !error;
  };
  int code = 0;
  {
    const Unlocked unlocked;
    const apps::Job job;
    code = apps::train(config, schema, job, "braid.train()", observe);
  }
  if (error) std::rethrow_exception(error);
  if (code == apps::exit_stopped && !ended) {
    PyErr_SetString(PyExc_KeyboardInterrupt, "the state is saved; the same call resumes the run");
    throw nb::python_error();
  }
  return config.run.out;
}

Facts prepare(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& output,
              const std::filesystem::path& tokenizer, int64_t train_bpe, int64_t tasks, double val_fraction,
              uint64_t seed, bool replace) {
  models::text::PrepareSummary made;
  {
    const Unlocked unlocked;
    made = models::text::prepare({.inputs = {inputs.begin(), inputs.end()},
                                  .val_inputs = {},
                                  .tasks = tasks,
                                  .output = output.string(),
                                  .replace = replace,
                                  .tokenizer = tokenizer.empty() ? "" : apps::tokenizer_path(tokenizer.string()),
                                  .train_bpe = train_bpe,
                                  .val_fraction = val_fraction,
                                  .seed = seed},
                                 [](const models::text::PrepareProgress&) { check_signals(); });
  }
  Facts facts;
  facts["tokenizer"] = made.manifest.tokenizer;
  facts["vocab_size"] = made.manifest.vocab_size;
  facts["train_tokens"] = made.manifest.train.tokens;
  facts["val_tokens"] = made.manifest.val.tokens;
  facts["notes"] = made.notes;
  return facts;
}

Facts columns(const std::string& source) {
  std::vector<Facts> rows;
  for (const apps::LogRow& row : apps::read_log_so_far(source)) rows.push_back(row_dict(row));
  Facts all;
  for (const Facts& row : rows)
    for (nb::handle name : row.keys())
      if (!all.contains(name)) all[name] = nb::list();
  for (const Facts& row : rows)
    for (const auto& [name, list] : all) nb::borrow<nb::list>(list).append(row.get(name, nb::none()));
  return all;
}

}  // namespace

void bind_runs(nb::module_& m) {
  m.def("prepare", prepare, "inputs"_a, "output"_a, "tokenizer"_a = "", "train_bpe"_a = 0, "tasks"_a = 0,
        "val_fraction"_a = 0.05, "seed"_a = 0, "replace"_a = false,
        "Text files and folders as a data folder for training, as `braid prepare` does. tokenizer: of a folder; "
        "train_bpe: trains one of so many ids; neither: bytes. tasks: samples of the built-in tasks. An interrupted "
        "call is resumed by repeating it.");
  m.def("_train", train, "file"_a, "overrides"_a, "on_step"_a.none());
  m.def("_log", columns, "source"_a);
}

}  // namespace braid::python
