// What the system lets this process use: memory and processors of the machine, or of the control groups that it is in
// (containers, jobs of a cluster, services).
#pragma once
#include <string>

namespace braid::detail {

struct GroupLimits {
  double memory;      // bytes; infinite: no limit
  double processors;  // time of processors in each period; infinite: no limit
};

// The lowest limits of the process's control groups and those above them, of versions 1 and 2. root: where /proc and
// the paths in it are looked for.
GroupLimits group_limits(const std::string& root = "");

double usable_memory();  // bytes, when it is first asked for
// Threads that run at a time: `processors`, or the quota of the groups, rounded up.
int usable_processors(int processors, double quota = group_limits().processors);

}  // namespace braid::detail
