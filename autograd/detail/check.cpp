#include "braid/autograd/detail/check.h"

#include "braid/tensor/kernels/backend.h"

namespace braid {

constinit thread_local bool detail::skip_index_check = false;

void check_ids(const char* op, const char* what, const Tensor& ids, int64_t limit, bool negative_allowed) {
  check(is_index(ids.dtype()), op,
        [&] { return str(what, " must be i64 or i32, got ", ids.dtype(), "; cast(ids, DType::i64) converts"); });
  if (ids.numel() == 0 || (detail::skip_index_check && ids.device() != kCpu)) return;
  Tensor range = empty({2}, DType::i64, ids.device());
  backend(ids.device()).index.min_max(ids.contiguous(), range);
  std::vector<int64_t> low_high = range.to_vector<int64_t>();
  if ((low_high[0] >= 0 || negative_allowed) && low_high[1] < limit) return;

  std::vector<int64_t> values = ids.to_vector<int64_t>();
  size_t at = 0;
  while ((values[at] >= 0 || negative_allowed) && values[at] < limit) ++at;
  Shape position = ids.shape();
  int64_t rest = static_cast<int64_t>(at);
  for (int a = ids.rank() - 1; a >= 0; --a) {
    position[a] = rest % ids.dim(a);
    rest /= ids.dim(a);
  }
  std::string allowed = str("0 to ", limit - 1);
  if (limit == 0) allowed = "none, because there are no rows";
  if (negative_allowed) allowed += ", or negative for \"not counted\"";
  std::string message = "[";  // appended piece by piece: g++ 12 warns falsely about a literal + a string here
  message.append(detail::called_op ? detail::called_op : op)
      .append("] ")
      .append(what)
      .append(" ")
      .append(std::to_string(values[at]));
  message.append(" at position ").append(str(position)).append(" is out of range; allowed: ").append(allowed);
  fail(ErrorKind::input, message);
}

}  // namespace braid
