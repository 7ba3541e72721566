#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "chaos/job.h"
#include "cli/run_reckon.h"
#include "executor/launch/process.h"

namespace reckon::test {

/// A model directory that was trained and exported beside `disk`: what a server on it must answer.
struct TrainedModel {
  std::vector<std::string> requests;         // bodies, one a client
  std::vector<std::vector<double>> answers;  // numbers of each
};

/// `reckon-worker serve`, started again whenever it is killed, while clients ask it and new
/// versions of the same model come. Every request is answered rightly, or refused in words; only
/// what kills the server or cuts its connections may take an answer away.
class ServingJob : public Job {
 public:
  /// Trains and exports into `w`, serves once, undisturbed, and takes its answer.
  static TrainedModel trained(const Workspace& w);

  ServingJob(const Workspace& w, const TrainedModel& model, const FaultCount& faults);
  ~ServingJob() override;
  std::string name() const override { return "serving"; }
  std::vector<pid_t> processes() const override;
  std::filesystem::path disk() const override { return w_.path("disk"); }
  void tick() override;
  void finish() override;
  bool over() const override { return over_; }
  void check() override;
  int starts() const override { return starts_; }
  std::string summary() const override;

 private:
  void start();
  void ended(const ProcessEnd& end);
  void bring_version();
  void ask_until_done(std::size_t number);
  void ask_once(class HttpClient& client, std::size_t number);
  void fail(const std::string& what);

  const Workspace& w_;
  const TrainedModel& model_;
  const FaultCount& faults_;
  std::uint16_t port_;
  std::unique_ptr<ChildProcess> server_;
  FaultCount::Moment began_;
  int starts_ = 0, versions_ = 0;
  std::chrono::steady_clock::time_point brought_{};
  bool finishing_ = false, over_ = false;
  std::vector<std::thread> clients_;
  std::atomic<bool> done_{false};
  std::atomic<int> answered_{0}, refused_{0}, taken_away_{0};
  std::mutex mutex_;
  std::optional<std::string> failure_;  // guarded by mutex_
};

}  // namespace reckon::test
