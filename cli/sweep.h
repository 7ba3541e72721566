#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "report/queue/queue.h"
#include "report/serving/sweep.h"
#include "report/sweep/sweep.h"
#include "sim/scenario/sweep.h"

namespace reckon::cli {

/// The axes of --sweep, or a UsageError that names every one that is wrong; those of the service
/// are where only trainings are forecast.
std::vector<SweepAxis> sweep_axes(const Sweeps& sweeps, bool of_services = false);

/// The changes of one point: those given, with the point's values as `--set`.
ScenarioChanges at_point(const ScenarioChanges& changes, const std::vector<SweepAxis>& axes,
                         const std::vector<std::string>& values);

/// One forecast a point. A point that cannot be is a row with its reason; if none can be, the
/// sweep itself is wrong: the first point's diagnostics.
Expected<Sweep> run_sweep(const std::string& file, const ScenarioChanges& changes,
                          const Sampling& sampling, const std::vector<SweepAxis>& axes,
                          const LoadedCatalog& catalog, const NetworkModel& network);

/// Whether a sweep is of the service: it changes one, or `file` trains nothing.
Expected<bool> sweeps_service(const std::string& file, const ScenarioChanges& changes,
                              const std::vector<SweepAxis>& axes);
/// As run_sweep, of the service.
Expected<ServingSweep> run_serving_sweep(const std::string& file, const ScenarioChanges& changes,
                                         const Sampling& sampling,
                                         const std::vector<SweepAxis>& axes,
                                         const LoadedCatalog& catalog);

/// As run_sweep, of jobs that share a cluster.
Expected<QueueSweep> run_queue_sweep(const std::string& file, const ScenarioChanges& changes,
                                     const Sampling& sampling, const std::vector<SweepAxis>& axes,
                                     const LoadedCatalog& catalog);

}  // namespace reckon::cli
