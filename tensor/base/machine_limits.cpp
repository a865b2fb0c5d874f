#include "braid/tensor/base/machine_limits.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "braid/tensor/base/strings.h"

namespace braid::detail {

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(std::move(word));
  return list;
}

bool has(const std::string& list, std::string_view name) {  // "cpu,cpuacct" has "cpu"
  return std::ranges::count(split(list, ','), name) > 0;
}

// The positive numbers at the beginning of a file: none where it says "max" or -1, or is not there.
std::vector<double> numbers_in(const std::string& file) {
  std::ifstream in(file);
  std::vector<double> list;
  for (double x = 0; in >> x && x > 0;) list.push_back(x);
  return list;
}

void lower(double& limit, const std::vector<double>& numbers) {
  if (!numbers.empty()) limit = std::min(limit, numbers[0]);
}
void lower_to_quota(double& limit, const std::vector<double>& quota, const std::vector<double>& period) {
  if (!quota.empty() && !period.empty()) limit = std::min(limit, quota[0] / period[0]);
}

// The path of the process's group in a hierarchy: of version 2 (controller ""), or of a controller of version 1.
std::optional<std::string> group_of(const std::string& root, std::string_view controller) {
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "4:memory:/job", "0::/user.slice"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? list.empty() : has(list, controller)) return line.substr(second + 1);
  }
  return {};
}

// Where a hierarchy is mounted, and which of its groups lies there. A line of the file: "32 31 0:29 /group
// /sys/fs/cgroup rw - cgroup cgroup rw,memory", with fields in front of the dash.
struct Mount {
  std::string group, folder;
};
std::optional<Mount> mount_of(const std::string& root, std::string_view controller) {
  std::ifstream in(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = words(line);
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    if (controller.empty() ? dash[1] == "cgroup2" : dash[1] == "cgroup" && has(dash[3], controller))
      return Mount{fields[3], fields[4]};
  }
  return {};
}

// Calls visit with the folder of the process's group and of each one above it, as far as they are mounted.
template <class Visit>
void for_each_group(const std::string& root, std::string_view controller, Visit&& visit) {
  const auto mount = mount_of(root, controller);
  const auto group = group_of(root, controller);
  if (!mount || !group) return;
  std::string path = *group == "/" ? "" : *group;
  const std::string above = mount->group == "/" ? "" : mount->group;  // what a container sees instead of the root
  path = path == above || path.starts_with(above + "/") ? path.substr(above.size()) : "";
  const std::string folder = root + mount->folder;
  for (;; path.resize(path.rfind('/'))) {
    visit(folder + path);
    if (path.empty()) return;
  }
}

}  // namespace

GroupLimits group_limits(const std::string& root) {
  GroupLimits limits{kNone, kNone};
  for_each_group(root, "", [&](const std::string& folder) {
    lower(limits.memory, numbers_in(folder + "/memory.max"));
    const std::vector<double> quota = numbers_in(folder + "/cpu.max");  // "150000 100000" or "max 100000"
    if (quota.size() > 1) lower_to_quota(limits.processors, quota, {quota[1]});
  });
  for_each_group(root, "memory", [&](const std::string& folder) {
    lower(limits.memory, numbers_in(folder + "/memory.limit_in_bytes"));
  });
  for_each_group(root, "cpu", [&](const std::string& folder) {
    lower_to_quota(limits.processors, numbers_in(folder + "/cpu.cfs_quota_us"),
                   numbers_in(folder + "/cpu.cfs_period_us"));
  });
  return limits;
}

double usable_memory() {
  static const double bytes = std::min(
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)), group_limits().memory);
  return bytes;
}

int usable_processors(int processors, double quota) {
  return std::max(1, static_cast<int>(std::min<double>(processors, std::ceil(quota))));
}

}  // namespace braid::detail
