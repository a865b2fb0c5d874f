#include "braid/nn/attention/variant.h"

#include "braid/tensor/base/strings.h"

namespace braid::nn {

static std::vector<AttentionVariantRule>& rules() {
  static std::vector<AttentionVariantRule> all = detail::built_in_attention_variants();
  return all;
}

void register_attention_variant(const AttentionVariantRule& rule) {
  for (const AttentionVariantRule& other : rules())
    check(other.name != rule.name, ErrorKind::setting,
          [&] { return "two attention variants are called " + rule.name; });
  rules().push_back(rule);
}

const std::vector<AttentionVariantRule>& attention_variants() { return rules(); }

const AttentionVariantRule& attention_variant_named(const std::string& name) {
  std::vector<std::string> names;
  for (const AttentionVariantRule& rule : rules()) {
    if (rule.name == name) return rule;
    names.push_back(rule.name);
  }
  fail(ErrorKind::setting, "unknown attention variant '" + braid::detail::preview(name) + "'" +
                               braid::detail::did_you_mean(name, names) + ": expected some of " +
                               braid::detail::join(names, ", "));
}

}  // namespace braid::nn
