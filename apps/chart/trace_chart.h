// The timeline of a step over its ranks, and the memory of the first one.
#pragma once
#include <filesystem>

#include "apps/chart/chart.h"

namespace braid::apps {

// Reads RUN/trace/rank-*.json. A row for each rank, its ops, derivatives and transfers as bars; neighbours of one kind
// that are too narrow to see share a bar. Below, the bytes of tensors on rank 0. Error(input) where there is no trace,
// or no event in it.
Chart trace_chart(const std::filesystem::path& run, const std::string& command);

}  // namespace braid::apps
