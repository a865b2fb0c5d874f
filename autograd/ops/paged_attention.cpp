#include "braid/autograd/paged_attention.h"

#include "braid/autograd/ops.h"
#include "braid/autograd/ops/attention_inputs.h"
#include "braid/autograd/ops/attention_reference.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

constexpr const char* kOp = "paged_attention";

// Calls each(i) for the blocks that hold the positions [first, end) of a row.
template <class Each>
void for_each_block(const PagedRow& row, int64_t block, Each&& each) {
  for (int64_t i = row.first / block; i * block < row.end; ++i) each(static_cast<size_t>(i));
}

void check_rows(const DcmhaInputs& x, const PagedRows& paged) {
  check(x.q.dim(0) == 1, kOp, [&] { return str("rows must be (1, R, N, d), got ", x.q.shape()); });
  check(std::ssize(paged.rows) == x.q.dim(1), kOp,
        [&] { return str(x.q.dim(1), " query rows need as many tables, got ", paged.rows.size()); });
  check(paged.block >= 1 && x.k.dim(1) % paged.block == 0, kOp,
        [&] { return str(x.k.dim(1), " key rows do not divide into blocks of ", paged.block); });
  const int64_t blocks = x.k.dim(1) / paged.block;
  for (size_t r = 0; r < paged.rows.size(); ++r) {
    const PagedRow& row = paged.rows[r];
    if (row.first >= row.end) continue;
    check(row.first >= 0, kOp,
          [&] { return str("the keys of row ", r, " begin at the negative position ", row.first); });
    for_each_block(row, paged.block, [&](size_t i) {
      check(i < row.blocks.size() && row.blocks[i] >= 0 && row.blocks[i] < blocks, kOp, [&] {
        return str("row ", r, " attends to positions ", row.first, "..", row.end - 1, ", of which block ", i,
                   " is not in its table, or is none of ", blocks);
      });
    });
  }
}

// The keys of a row, one after the other: a call of its own.
DcmhaInputs gathered(const DcmhaInputs& x, int64_t r, const PagedRow& row, int64_t block) {
  std::vector<int64_t> places;
  for (int64_t s = row.first; s < row.end; ++s)
    places.push_back(row.blocks[static_cast<size_t>(s / block)] * block + s % block);
  const Tensor index = from_vector(places, {std::ssize(places)}).to(x.q.device());
  DcmhaInputs one = x;
  for_each_tensor(
      [&](const AttentionRole& role, Tensor& t) {
        using enum AttentionRole::Positions;
        if (!t || role.positions == none) return;
        if (role.positions == queries) {
          t = t.sliced(1, r, r + 1);
          return;
        }
        Shape shape = t.shape();
        const Tensor of_row = index_select(contiguous(t).reshaped({shape[1], t.numel() / shape[1]}), index);
        shape[1] = std::ssize(places);
        t = of_row.reshaped(shape);
      },
      one);
  one.k = one.k.to(x.q.dtype()), one.v = one.v.to(x.q.dtype());
  one.mask = {.causal = false};
  return one;
}

Tensor composed(const DcmhaInputs& x, const PagedRows& paged) {
  Tensor y = zeros_like(x.q);
  for (int64_t r = 0; r < x.q.dim(1); ++r) {
    const PagedRow& row = paged.rows[static_cast<size_t>(r)];
    if (row.first < row.end) y.sliced(1, r, r + 1).copy_(attention_reference(gathered(x, r, row, paged.block)));
  }
  return y;
}

}  // namespace

Tensor paged_attention(const Tensor& q, const Tensor& k, const Tensor& v, const HeadMixing& pre, const HeadMixing& post,
                       const PagedRows& rows, const DcmhaOptions& options) {
  const DcmhaInputs x = inputs_of(kOp, q, k, v, pre, post, options.groups, options);
  check_inputs(kOp, x, true);
  check(options.key_lengths.empty() && !options.attend && !options.bias && options.dropout == 0 && options.softcap == 0,
        kOp, "takes the keys of each row from its table: no key_lengths, attend, bias, dropout or softcap");
  check(v.shape() == k.shape(), kOp,
        [&] { return str("values ", v.shape(), " must have the keys' shape ", k.shape()); });
  check_rows(x, rows);
  for_each_tensor(
      [](const AttentionRole&, const Tensor& t) {
        if (t) no_gradient(kOp, t);
      },
      x);
  const NoGrad off;
  const Backend& device = backend(q.device());
  const bool has_kernel = bool(device.attention.paged);
  check(has_kernel || options.impl != AttentionImpl::fused, kOp,
        [&] { return str("there is no fused kernel on ", q.device(), "; use AttentionImpl::automatic"); });
  if (!has_kernel || options.impl == AttentionImpl::reference || options.impl == AttentionImpl::chunked)
    return composed(x, rows);
  Tensor y = empty(q.shape(), q.dtype(), q.device());
  if (y.numel() == 0) return y;
  device.attention.paged(rows_contiguous(x), rows, y);
  return y;
}

}  // namespace braid
