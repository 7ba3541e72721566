#pragma once
#include <span>
#include <string>

namespace reckon::cli {

/// `reckon-worker PLAN`: one process of a job; the exit code.
int run_worker(std::span<const std::string> words);

}  // namespace reckon::cli
