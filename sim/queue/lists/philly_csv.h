#pragma once
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/queue/job_list.h"

namespace reckon {

/// The table of read_philly (job_lists.h).
Expected<JobList> read_philly_csv(const std::string& file, std::string_view bytes);

}  // namespace reckon
