#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "executor/http/listen_address.h"
#include "executor/serve/batcher.h"
#include "executor/serve/model_version.h"
#include "sim/base/quantity.h"

namespace reckon::worker {

struct ServingOptions {
  std::filesystem::path model;  // a directory of versions
  std::string name;             // of the model in paths; "": its network's
  ListenAddress listen;
  std::string token;  // that requests have to show; "": none
  BatchRules rules;
  Seconds poll{1};     // between two looks for a new version
  Seconds linger{10};  // answering on when told to stop
  int threads = 0;     // that compute; 0: the machine's cores
};

/// The network whose weights a version holds. Throws ModelVersionError.
using NetworkOf = std::function<ModelGraph(const ModelVersion&)>;

/// Answers requests with the newest version, and with newer ones as they come, until this process
/// is told to stop. Says on standard output which version answers, and where. Throws
/// ModelVersionError where there is no such directory.
void run_serving(const ServingOptions& options, const NetworkOf& network_of);

}  // namespace reckon::worker
