#include "apps/eval/without_text.h"

#include <algorithm>

#include "apps/cli/loaded_model.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

bool names_task(const Arguments& arguments, const std::string& prefix) {
  return std::ranges::any_of(arguments.list("TASK"), [&](const std::string& task) { return task.starts_with(prefix); });
}

void check_only(const Arguments& arguments, const std::string& prefix, const std::string& what) {
  for (const std::string& task : arguments.list("TASK"))
    check(task.starts_with(prefix), ErrorKind::setting, [&] {
      return what + " and texts are tasks of different models: expected " + prefix + "NAME alone, found also " +
             preview(task);
    });
  for (const char* flag : {"out", "compare", "shots", "shots-from", "seed", "stride", "tokenizer", "max-length"})
    check(!arguments.has(flag) || arguments.get(flag).empty(), ErrorKind::setting,
          [&] { return str("--", flag, " is for texts: it has no effect on ", what, "; leave it out"); });
}

models::LoadedModel load_model_of(const Arguments& arguments) {
  if (const int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  return load_on_device(arguments, model_folder(arguments.get("MODEL")),
                        {.dtype = dtype_of(arguments),
                         .settings = model_keys(arguments),
                         .base = base_of(arguments),
                         .weight_bits = weight_bits(arguments)});
}

}  // namespace braid::apps
