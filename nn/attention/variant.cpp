#include "braid/nn/attention/variant.h"

#include <limits>

#include "braid/nn/rule_list.h"
#include "braid/tensor/base/strings.h"

namespace braid::nn {

static RuleList<AttentionVariantRule>& rules() {
  static RuleList<AttentionVariantRule> list("attention variants", detail::built_in_attention_variants());
  return list;
}

void register_attention_variant(const AttentionVariantRule& rule) { rules().add(rule); }

const std::vector<AttentionVariantRule>& attention_variants() { return rules().all(); }

const AttentionVariantRule& attention_variant_named(const std::string& name) {
  if (const AttentionVariantRule* rule = rules().find(name)) return *rule;
  const std::vector<std::string> names = rules().names();
  fail(ErrorKind::setting, "unknown attention variant '" + braid::detail::preview(name) + "'" +
                               braid::detail::did_you_mean(name, names) + ": expected some of " +
                               braid::detail::join(names, ", "));
}

Tensor softmax_beside(const Tensor& s, const Tensor& z) {
  const int64_t S = s.dim(3);
  return slice(softmax(concat({s, expand(z, {s.dim(0), s.dim(1), s.dim(2), 1})}, 3)), 3, 0, S);
}

void check_attention_variants(const std::vector<std::string>& names) {
  const auto need = [](bool ok, const std::string& expected, const std::string& found) {
    check(ok, ErrorKind::setting, [&] { return "bad attention: expected " + expected + ", found " + found; });
  };
  std::string normalising;
  for (const std::string& name : names) {
    const AttentionVariantRule& rule = attention_variant_named(name);
    need(rule.queries_per_head == 1 || name == names[0], name + " first, which makes heads of several query heads",
         braid::detail::join(names, ","));
    need(!rule.normalises || normalising.empty(), "one variant in the place of the softmax",
         normalising + " and " + name);
    if (rule.normalises) normalising = name;
  }
}

AttentionVariants::AttentionVariants(const std::vector<std::string>& names, VariantSizes sizes, RandomKey key)
    : names_(names) {
  check_attention_variants(names);
  for (const std::string& name : names) {
    const AttentionVariantRule& rule = attention_variant_named(name);
    queries_per_head_ *= rule.queries_per_head;
    composed_ = composed_ || rule.composed;
    sizes.queries = sizes.heads * queries_per_head_;
    variants_.push_back(rule.make(sizes, child(key, name.c_str())));
  }
}

AttentionVariants::AttentionVariants(const AttentionVariants& other)
    : names_(other.names_), queries_per_head_(other.queries_per_head_), composed_(other.composed_) {
  for (size_t i = 0; i < names_.size(); ++i)
    variants_.push_back(attention_variant_named(names_[i]).copy(*other.variants_[i]));
}

AttentionVariants& AttentionVariants::operator=(AttentionVariants other) noexcept {
  std::swap(names_, other.names_);
  std::swap(variants_, other.variants_);
  queries_per_head_ = other.queries_per_head_;
  composed_ = other.composed_;
  return *this;
}

Tensor AttentionVariants::projections(Tensor qkv, const QkvSplit& how, const Tensor& x, const Pass& pass) const {
  for (const auto& variant : variants_) qkv = variant->projections(qkv, how, x, pass);
  return qkv;
}

Tensor AttentionVariants::output(Tensor y, const Tensor& x, const Tensor& v, const Pass& pass) const {
  for (const auto& variant : variants_) y = variant->output(y, x, v, pass);
  return y;
}

ScoreFunction AttentionVariants::probabilities(std::function<Tensor(const Tensor& scores)> first) const {
  return [variants = variants_, first = std::move(first)](const Tensor& scores, const AttentionMask& mask) {
    Tensor s = first ? first(scores) : scores, p;
    for (const auto& variant : variants) s = variant->scores(s);
    s = mask_scores(s, mask, -std::numeric_limits<double>::infinity());
    for (const auto& variant : variants)
      if (!p) p = variant->normalised(s);
    if (!p) p = softmax(s);
    for (const auto& variant : variants) p = variant->probabilities(p);
    return mask_scores(p, mask, 0);
  };
}

void AttentionVariants::visit(Visitor& v) const {
  for (size_t i = 0; i < names_.size(); ++i) v(names_[i], *variants_[i]);
}

}  // namespace braid::nn
