// Control groups as files in a folder that stands for the root of the system.
#include "braid/tensor/base/machine_limits.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/temp_folder.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(machine_limits)

namespace {

struct Root {
  void file(const std::string& path, const std::string& text) const { folder.write(path.substr(1), text); }
  detail::GroupLimits limits() const { return detail::group_limits(folder.path.string()); }
  TempFolder folder;
};

constexpr double kMiB = 1 << 20;
const std::string kUnified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

}  // namespace

BOOST_AUTO_TEST_CASE(no_groups_are_no_limits) {
  Root root;
  BOOST_TEST(std::isinf(root.limits().memory));
  BOOST_TEST(std::isinf(root.limits().processors));
  root.file("/proc/self/cgroup", "0::/\n");
  root.file("/proc/self/mountinfo", kUnified);
  root.file("/sys/fs/cgroup/memory.max", "max\n");
  root.file("/sys/fs/cgroup/cpu.max", "max 100000\n");
  BOOST_TEST(std::isinf(root.limits().memory));
  BOOST_TEST(std::isinf(root.limits().processors));
}

BOOST_AUTO_TEST_CASE(the_lowest_limit_on_the_way_up_counts) {
  Root root;
  root.file("/proc/self/cgroup", "0::/system.slice/job.scope/step\n");
  root.file("/proc/self/mountinfo", "21 1 0:5 / /proc rw - proc proc rw\n" + kUnified);
  const std::string slice = "/sys/fs/cgroup/system.slice";
  root.file(slice + "/job.scope/step/memory.max", "max\n");
  root.file(slice + "/job.scope/step/cpu.max", "250000 100000\n");
  root.file(slice + "/job.scope/memory.max", "314572800\n");
  root.file(slice + "/memory.max", "629145600\n");
  root.file(slice + "/cpu.max", "150000 100000\n");
  root.file("/sys/fs/cgroup/other/memory.max", "1048576\n");
  BOOST_TEST(root.limits().memory == 300 * kMiB);
  BOOST_TEST(root.limits().processors == 1.5);
  root.file(slice + "/memory.max", "1048576\n");
  BOOST_TEST(root.limits().memory == kMiB);
}

BOOST_AUTO_TEST_CASE(version_1_has_a_hierarchy_for_each_controller) {
  Root root;
  root.file("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/jobs/b\n3:cpuset:/\n0::/\n");
  root.file("/proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
            "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.file("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "314572800\n");
  root.file("/sys/fs/cgroup/memory/jobs/b/memory.limit_in_bytes", "9223372036854771712\n");
  root.file("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  root.file("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  root.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  root.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  BOOST_TEST(root.limits().memory == 300 * kMiB);
  BOOST_TEST(root.limits().processors == 0.5);
}

// A container of version 1 sees its own group as the root of the mount, and its path from the root of the machine.
BOOST_AUTO_TEST_CASE(groups_that_are_mounted_below_their_root) {
  Root root;
  root.file("/proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  root.file("/proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  root.file("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "2097152\n");
  root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4194304\n");
  BOOST_TEST(root.limits().memory == 2 * kMiB);
  root.file("/proc/self/cgroup", "4:memory:/elsewhere\n");
  BOOST_TEST(root.limits().memory == 4 * kMiB);
}

BOOST_AUTO_TEST_CASE(quotas_are_rounded_up) {
  BOOST_TEST(detail::usable_processors(8, INFINITY) == 8);
  BOOST_TEST(detail::usable_processors(8, 1.5) == 2);
  BOOST_TEST(detail::usable_processors(8, 2.0) == 2);
  BOOST_TEST(detail::usable_processors(2, 7.5) == 2);
  BOOST_TEST(detail::usable_processors(8, 0.1) == 1);
  BOOST_TEST(detail::usable_memory() > 0);
}

BOOST_AUTO_TEST_SUITE_END()
