#include "braid/models/inspect/attention_case.h"

#include "braid/models/families/dcformer/config.h"

namespace braid::models {

std::optional<AttentionFolder> read_attention_folder(const std::string& config_json, const std::string& file_name,
                                                     const SettingTexts& settings) {
  if (!is_attention_case(config_json, file_name)) return std::nullopt;
  const AttentionCase attention = read_attention_case(config_json, file_name);
  const DcformerConfig config = configure(attention.config, settings);
  AttentionFolder folder{.batch = attention.batch,
                         .q_len = attention.q_len,
                         .kv_len = attention.kv_len,
                         .heads = config.n_head,
                         .head_dim = config.head_dim,
                         .rank = config.profile.rank};
  folder.options.groups = config.profile.num_groups;
  folder.options.mask = {config.profile.causal, config.keys_of_layer(0, false), attention.q_offset};
  return folder;
}

Shape AttentionFolder::shape_of(const AttentionRole& role) const {
  const std::string member = role.member;
  const int64_t P = role.positions == AttentionRole::Positions::queries ? q_len : kv_len;
  const int64_t G = options.groups, M = heads / G;
  if (!*role.stage) return {batch, P, heads, head_dim};
  if (member == "base") return {G, M, M};
  if (member.ends_with("gate")) return {batch, P, G, M};
  return {batch, P, G, rank, M};
}

}  // namespace braid::models
