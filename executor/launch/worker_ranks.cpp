#include "executor/launch/worker_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "executor/comm/rendezvous/job_secret.h"
#include "executor/launch/local/job.h"
#include "executor/train/records/pod_orders.h"
#include "sim/base/standard_streams.h"

namespace reckon {
namespace {

ProcessSpec process_of_rank(const WorkerRanks& worker, int own, const Socket& meeting,
                            const std::optional<JobSecretFile>& secret) {
  RunEnvironment told;
  told.rank_of_worker = own;
  told.parent = ::getpid();
  if (worker.alone) told.meeting = meeting.local();
  ProcessSpec p;
  p.name = fmt::format("rank {}", worker.first + own);
  p.command = worker.command;
  p.environment = told.variables_of_rank();
  p.environment.emplace_back("LOCAL_RANK", std::to_string(own));
  p.environment.emplace_back("LOCAL_WORLD_SIZE", std::to_string(worker.ranks));
  if (secret) p.environment.emplace_back(JobSecret::kVariable, secret->path().string());
  if (!worker.alone) return p;
  keep_nccl_on_this_machine(p);
  if (own == 0) p.inherited.emplace_back(RunEnvironment::kRendezvousVariable, meeting.fd());
  return p;
}

/// What a pod says of the starts that it takes part in: its ranks say it each of themselves
/// (pod_orders.h), whoever watches it asks for all of them.
class StartsOfPod {
 public:
  explicit StartsOfPod(const WorkerRanks& worker)
      : ranks_(worker.ranks), first_(worker.first), left_(std::size_t(worker.ranks)) {}

  /// Of the first rank, among those of the start that the pod takes part in.
  int first() const { return first_; }
  /// Is it a line of that kind? `say` gets the pod's, where there is something to say.
  bool take(int own, std::string_view line, const std::function<void(std::string)>& say) {
    if (const auto part = parse_part_line(line)) {
      left_[std::size_t(own)].reset();
      if (own == 0) {
        first_ = part->rank;
        said_.reset();
        say(part_line(order_of_pod(*part, ranks_)));
      }
      return true;
    }
    const auto behind = parse_waiting_line(line);
    if (!behind) return false;
    left_[std::size_t(own)] = behind;
    // One that had no time to take part in a start has left one before it.
    if (!std::ranges::all_of(left_, [](const auto& left) { return left.has_value(); })) return true;
    const auto newest = *std::ranges::max_element(left_);
    if (std::exchange(said_, newest) != newest) say(waiting_line(*newest));
    return true;
  }

 private:
  int ranks_, first_;
  std::vector<std::optional<std::int64_t>>
      left_;                          // of the ranks that wait: the start that they left
  std::optional<std::int64_t> said_;  // the pod waits, and has left this start
};

void print_step(const ProgressReport& r) {
  print(fmt::format("step {} loss {:.4f} samples/s {:.1f} step {:.3f}s\n", r.step,
                    r.loss.value_or(0), static_cast<double>(r.samples) / r.seconds.count(),
                    r.seconds.count()));
}

std::filesystem::path place_of_secret() {
  return std::filesystem::temp_directory_path() /
         fmt::format("reckon-worker-{}.secret", ::getpid());
}

}  // namespace

int run_worker_ranks(const WorkerRanks& worker, const std::function<StopRequest()>& stop) {
  GangOptions gang;
  std::optional<JobSecretFile> secret;
  if (worker.alone) {
    gang.rendezvous = local_rendezvous();
    if (!worker.has_secret) secret.emplace(place_of_secret());
  }
  for (int own = 0; own < worker.ranks; ++own)
    gang.members.push_back(process_of_rank(worker, own, gang.rendezvous, secret));
  constexpr Seconds kAsLongAsItTakes{24 * 3600};
  gang.notice = kAsLongAsItTakes;
  gang.grace = worker.grace;
  GangEvents events;
  StartsOfPod starts(worker);
  events.output = [&](int own, std::string_view line) {
    if (starts.take(own, line, print)) return;
    const bool record = worker.records && line.starts_with("{\"record\":");
    print(record ? fmt::format("{}\n", line)
                 : fmt::format("[rank {}] {}\n", starts.first() + own, line));
  };
  if (worker.first == 0 && !worker.records)
    events.progress = [](int own, const ProgressReport& r) {
      if (own == 0 && r.phase == ProgressPhase::done) print_step(r);
    };
  const GangEnd end = run_gang(std::move(gang), events, stop);
  if (end.culprit) print_error(fmt::format("reckon-worker: error: {}\n", end.reason));
  return end.code;
}

}  // namespace reckon
