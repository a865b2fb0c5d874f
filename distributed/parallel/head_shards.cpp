#include "braid/distributed/parallel/head_shards.h"

#include "braid/autograd/ops.h"
#include "braid/distributed/parallel/mappings.h"

namespace braid::dist {

namespace {
// Which of the rank's required key/value heads each of its query heads reads.
std::vector<int64_t> heads_read(const HeadShards& heads, int rank) {
  const Range own = heads.queries.single(rank), required = heads.required.single(rank);
  const int64_t share = heads.queries.extent() / heads.keys.extent();
  std::vector<int64_t> read;
  for (int64_t n = own.begin; n < own.end; ++n) read.push_back(n / share - required.begin);
  return read;
}
}  // namespace

HeadShards shard_heads(int64_t queries, int64_t keys, int ranks, int64_t joined) {
  HeadShards s{scale_partition(even_partition(queries / joined, ranks), joined), even_partition(keys, ranks), {}};
  const int64_t share = queries / keys;
  for (int r = 0; r < ranks; ++r) {
    const Range own = s.queries.single(r);
    s.required.ranges.push_back(own.size() > 0 ? Ranges{{own.begin / share, (own.end - 1) / share + 1}}
                                               : Ranges{{0, 0}});
  }
  return s;
}

void gather_required_heads(nn::AttentionOperands& x, const HeadShards& heads, const Communicator& tensor) {
  if (heads.required == heads.keys) return;
  for (Tensor* t : {&x.k, &x.v}) *t = sparse_all_gather(*t, 2, heads.keys, heads.required, tensor);
}

bool shares_evenly(const HeadShards& heads, int rank) {
  const std::vector<int64_t> read = heads_read(heads, rank);
  const int64_t queries = std::ssize(read), keys = heads.required.single(rank).size();
  if (queries == 0 || queries % keys != 0) return queries == 0;
  for (int64_t n = 0; n < queries; ++n)
    if (read[static_cast<size_t>(n)] != n / (queries / keys)) return false;
  return true;
}

nn::AttentionOperands evenly_shared(nn::AttentionOperands x, const HeadShards& heads, int rank) {
  if (shares_evenly(heads, rank)) return x;
  const std::vector<int64_t> read = heads_read(heads, rank);
  for (Tensor* t : {&x.k, &x.v}) {
    std::vector<Tensor> parts;
    for (int64_t head : read) parts.push_back(slice(*t, 2, head, head + 1));
    *t = concat(parts, 2);
  }
  return x;
}

}  // namespace braid::dist
