#pragma once
#include <string>
#include <vector>

#include "sim/queue/snapshot/start_forecast.h"

// What `reckon simulate JOB --cluster SNAPSHOT` says.
namespace reckon {

/// The same job asked for otherwise.
struct StartAlternative {
  std::string what;  // "1 node of 8"
  StartForecast forecast;
};

struct StartAnswer {
  std::string scenario;
  std::string asks;  // "2 nodes of 8 A100-SXM4-80, partition batch"
  const ClusterSnapshot& snapshot;
  const Submission& mine;
  StartForecast forecast;
  std::vector<StartAlternative> alternatives;
  std::vector<std::string> notes;
};

/// When it starts and ends, what it waits for, what would change that, and what that rests on.
std::string start_table(const StartAnswer& answer, int width = 100);
std::string start_json(const StartAnswer& answer);

}  // namespace reckon
