// Whether autograd/record.h records on this thread. It is here because Tensor's raw members, which would drop a
// gradient, throw while it is on.
#pragma once

namespace braid::detail {

extern constinit thread_local bool recording;  // on at first

}  // namespace braid::detail
