#pragma once
#include <span>
#include <string>

namespace reckon::cli {

/// `reckon-worker export RUN MODEL`: what a run has trained, as the next version of a model
/// directory.
int run_model_export(std::span<const std::string> words);

}  // namespace reckon::cli
