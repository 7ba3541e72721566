#include "executor/kubernetes/pods/standing_pods.h"

#include <utility>

#include "executor/kubernetes/pods/gang/watched_gang.h"

namespace reckon::kubernetes {

StandingPods::StandingPods(const Kubectl& kubectl, ClusterGangOptions options,
                           ClusterGangEvents events)
    : options_(std::move(options)),
      events_(std::move(events)),
      gang_(std::make_unique<ClusterGang>(kubectl, options_, events_)) {}

StandingPods::~StandingPods() = default;

GangEnd StandingPods::run(std::int64_t start, const std::function<StopRequest()>& stop) {
  return gang_->run_start(start, stop);
}

bool StandingPods::can_go_on() const { return gang_->can_go_on(); }

}  // namespace reckon::kubernetes
