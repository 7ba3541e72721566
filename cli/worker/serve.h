#pragma once
#include <span>
#include <string>

namespace reckon::cli {

/// `reckon-worker serve MODEL`: answers requests with the newest version until it is told to stop.
int run_serve(std::span<const std::string> words);

}  // namespace reckon::cli
