#include "braid/distributed/comm/process_mesh.h"

#include <algorithm>

namespace braid::dist {

void complete_mesh_sizes(int64_t P, int64_t& data, int64_t& context, int64_t& tensor) {
  int64_t* open = nullptr;
  int64_t named = 1;
  bool fits = true;
  for (int64_t* size : {&data, &context, &tensor}) {
    if (*size == 0) {
      fits = fits && !open;
      open = size;
    } else {
      fits = fits && *size > 0 && *size <= P;
      named *= std::clamp<int64_t>(*size, 1, P + 1);
    }
  }
  auto text = [](int64_t n) { return n == 0 ? std::string("the rest") : std::to_string(n); };
  check(fits && (open ? P % named == 0 : named == P), ErrorKind::setting, [&] {
    return str(
        "parallel.data x parallel.context x parallel.tensor must be the number of processes: expected a product "
        "of ",
        P, ", found ", text(data), " x ", text(context), " x ", text(tensor));
  });
  if (open) *open = P / named;
}

ProcessMesh make_mesh(const Communicator& world, int64_t data, int64_t context, int64_t tensor) {
  complete_mesh_sizes(world.size(), data, context, tensor);
  int t = world.rank() % static_cast<int>(tensor),
      c = world.rank() / static_cast<int>(tensor) % static_cast<int>(context);
  int d = world.rank() / static_cast<int>(tensor * context);
  return {.world = world,
          .data = world.split(c * static_cast<int>(tensor) + t, "data"),
          .context = world.split(d * static_cast<int>(tensor) + t, "context"),
          .tensor = world.split(d * static_cast<int>(context) + c, "tensor"),
          .replica_group = world.split(t, "replicas")};
}

}  // namespace braid::dist
