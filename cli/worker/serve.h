#pragma once
#include <span>
#include <string>

namespace reckon::worker {

/// `reckon-worker export RUN MODEL`: what a run has trained, as the next version of a model
/// directory.
int run_export(std::span<const std::string> arguments);
/// `reckon-worker serve MODEL`: answers requests with the newest version until it is told to stop.
int run_serve(std::span<const std::string> arguments);

std::string export_help();
std::string serve_help();

}  // namespace reckon::worker
