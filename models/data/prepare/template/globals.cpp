// Functions that a template finds without defining them.
#include "braid/models/data/prepare/template/functions.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::text::jinja {

Value call_global(std::string_view name, const Arguments& given, Context& context) {
  if (name == "raise_exception") {
    check_arguments(given, 1, {"message"}, "raise_exception", context);
    const Text message = context.str(given.get(0, "message"));
    throw Raised(ErrorKind::input, str(context.name, ", line ", context.line,
                                       ": the template says: ", detail::preview(message.bytes, 1000)));
  }
  if (name == "range") {
    check_arguments(given, 3, {}, "range", context);
    if (given.values.empty()) context.fail("range needs a number");
    int64_t bounds[3] = {0, 0, 1};
    for (size_t i = 0; i < given.values.size(); ++i)
      bounds[i] = integer_of(given.values[i], "a bound of range", context);
    if (given.values.size() == 1) std::swap(bounds[0], bounds[1]);
    if (bounds[2] == 0) context.fail("the step of range is 0");
    std::vector<Value> items;
    for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1];) {
      items.push_back(Value::integer(i));
      context.spend(1);
      if (items.size() > 100000) context.fail("a range is too long: at most 100000 items");
      if (__builtin_add_overflow(i, bounds[2], &i)) break;
    }
    return context.list(std::move(items));
  }
  std::vector<std::pair<Value, Value>> items;  // of dict and namespace
  if (given.values.size() > 1 || (given.values.size() == 1 && !given.values[0].dict()))
    context.fail(str(name, " takes one dict, and values by name"));
  if (!given.values.empty()) items = given.values[0].dict()->items;
  for (const auto& [key, value] : given.named) items.emplace_back(context.string(key), value);
  return context.dict(std::move(items));
}

}  // namespace braid::models::text::jinja
