#include "apps/cli/output_name.h"

#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

void check_output_name(const std::string& flag, const std::string& name, const std::vector<std::string>& inputs) {
  check(name != "-", ErrorKind::setting,
        [&] { return flag + " - is no name: expected a file or folder; ./- is one called so"; });
  for (const std::string& input : inputs)
    check(!io::is_file(name) || !io::is_same(name, input), ErrorKind::setting,
          [&] { return flag + " would replace " + name + ", which is read: expected another name"; });
}

}  // namespace braid::apps
