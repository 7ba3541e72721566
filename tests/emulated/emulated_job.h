#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "emulated/emulated_cluster.h"
#include "executor/train/records/measurement_log.h"

// Jobs of reckon-worker on an emulated cluster, and the forecasts of `reckon simulate` of them.
namespace reckon::emulated {

using Json = nlohmann::json;

constexpr int kRuns = 5;  // steps, and the first, which is not counted

enum class Exchange { ring, layout, servers_apart, servers, asynchronous };

struct Job {
  std::string name;
  Exchange kind = Exchange::servers;
  int workers = 1, servers = 0;
  /// Keys of `workload`, one a line: model, dataset, batch_per_accelerator.
  std::string workload;
  std::string strategy;                       // of Exchange::layout: the value of workload.strategy
  std::string megabytes;                      // of gradients, as the table shows them
  double worker_link = 30, server_link = 60;  // Mbit/s
  double chief_link = 0;                      // of the first worker; 0: as the others'
  bool learned = false;                       // calibration reads it

  bool asynchronous() const { return kind == Exchange::asynchronous; }
};

/// Links carry frames of Ethernet: of 1514 bytes 1448 are payload of TCP with time stamps; what
/// slows them down beside that is not known. A round trip through two queues of the bridge that are
/// empty takes a fraction of a millisecond.
inline const char* const kLayer =
    "ethernet:\n  efficiency: {value: 0.956, low: 0.88, high: 0.98}\n"
    "  latency: {value: 200 us, low: 50 us, high: 2 ms}\n";

std::string scenario(const Job& job);

/// "step" of `reckon simulate`'s JSON.
Json forecast(const test::Workspace& w, const std::string& file, const std::string& options);

/// Runs the job, each process on its host. Its measurements lie in `out`; of a job that is learned
/// from all that a run leaves. Throws std::runtime_error with what the processes said.
void run(const test::Workspace& w, const Job& job, const std::string& file, const std::string& out);

/// Median over the counted steps: of each step its longest on any worker, of an asynchronous job
/// rank 0's.
double measured(const test::Workspace& w, const Job& job, const std::string& out,
                Seconds StepRecord::*part);
/// Megabytes that a worker sends in a step, by the same rule.
double megabytes_sent(const test::Workspace& w, const Job& job, const std::string& out);

/// The option of what `reckon calibrate` learns from runs (" run-1 run-2"). Where the forecasts
/// were that good that the overlay makes what is held out worse, it refuses it, and who asked goes
/// on with the catalog: so do the tables ("").
std::string calibrate(const test::Workspace& w, const std::string& learned);

double median(std::vector<double> values);

}  // namespace reckon::emulated
