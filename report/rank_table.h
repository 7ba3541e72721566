#pragma once
#include <string>
#include <vector>

#include "executor/kubernetes/kubernetes_run.h"

namespace reckon {

/// One line a process: its node, what it does, its last step and how long that took. Of many
/// processes those that differ from the others, then the first ones, `most` lines in all.
std::string rank_table(const std::vector<kubernetes::RankStatus>& ranks, std::size_t most);

}  // namespace reckon
