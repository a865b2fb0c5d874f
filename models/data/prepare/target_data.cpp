#include "braid/models/data/prepare/target_data.h"

#include <filesystem>

#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::text {

namespace {

bool same_options(const Manifest& a, const Manifest& b) {
  return a.tokenizer_fingerprint == b.tokenizer_fingerprint && a.seed == b.seed && a.val_fraction == b.val_fraction &&
         (a.validation == Validation::given) == (b.validation == Validation::given) && a.samples == b.samples;
}

}  // namespace

void describe_options(const PrepareOptions& options, const Tokenizer& tokenizer, Manifest& manifest) {
  manifest.tokenizer = tokenizer.name();
  manifest.tokenizer_fingerprint = tokenizer.fingerprint();
  manifest.vocab_size = tokenizer.vocab_size();
  manifest.seed = options.seed;
  manifest.val_fraction = options.val_fraction;
  if (!options.val_inputs.empty()) manifest.validation = Validation::given;
}

void check_replaceable(const PrepareOptions& options, const std::string& target, bool complete,
                       PrepareSummary& summary) {
  if (!io::exists(std::filesystem::path(target) / manifest_name)) return;
  std::string found = "data that cannot be read";
  bool same = false;
  try {
    const Manifest older = read_manifest(target);
    found = str("data with fingerprint ", older.fingerprint, " (", older.train.tokens, " training tokens)");
    same = complete ? older.fingerprint == summary.manifest.fingerprint : same_options(older, summary.manifest);
  } catch (const io::SystemError&) {  // the disk says nothing about the data
    throw;
  } catch (const Error& e) {
    found += str(": ", e.what());
  }
  summary.unchanged = complete && same;
  if (complete && !same) summary.replaced = found;
  check(same || options.replace, ErrorKind::setting, [&] {
    return "the folder " + options.output + " holds other data: expected a new folder or the same data, found " +
           found + "; runs trained on it would not resume after a change: name another folder, or set `replace`";
  });
}

}  // namespace braid::models::text
