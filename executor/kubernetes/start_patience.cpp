#include "executor/kubernetes/start_patience.h"

#include <fmt/format.h>

#include <utility>

#include "executor/kubernetes/pods/pod_loss.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {

void StartPatience::pass(bool answers) {
  const Clock::time_point now = Clock::now();
  const Clock::time_point before = std::exchange(last_, now);
  if (answers) waited_ += now - before;
}

void StartPatience::tell_once(const std::string& text) {
  if (told_.insert(text).second) tell_(text);
}

std::optional<StartPatience::Verdict> StartPatience::look_at(int rank, const std::string& name,
                                                             const PodView* pod,
                                                             const std::string& no_pod) {
  if (pod == nullptr || pod->node.empty()) return look_at_unplaced(pod, no_pod);
  return look_at_placed(waiting_[rank], name, *pod);
}

std::optional<StartPatience::Verdict> StartPatience::look_at_unplaced(const PodView* pod,
                                                                      const std::string& no_pod) {
  const std::string why = pod != nullptr ? pod->unschedulable : no_pod;
  if (!why.empty()) tell_once((pod != nullptr ? "no node yet: " : "no pod yet: ") + why);
  if (waited_ < limits_.pending) return std::nullopt;
  return Verdict{
      kNoRoom,
      fmt::format("has no {} after {}: {}", pod != nullptr ? "node" : "pod",
                  format_duration(limits_.pending),
                  why.empty() ? "its Job has not made one; `kubectl describe job` says why" : why)};
}

std::optional<StartPatience::Verdict> StartPatience::look_at_placed(Waiting& waiting,
                                                                    const std::string& name,
                                                                    const PodView& pod) {
  if (!waiting.placed) waiting.placed = waited_;
  const StartTrouble trouble = start_trouble(pod);
  if (trouble.words.empty()) {
    waiting.troubled.reset();
    if (waited_ - *waiting.placed <= limits_.pending) return std::nullopt;
    return Verdict{kNoRoom,
                   fmt::format("has not started on {} after {}; `kubectl describe pod {}` says why",
                               pod.node, format_duration(limits_.pending), pod.name)};
  }
  if (!waiting.troubled) waiting.troubled = waited_;
  tell_once(fmt::format("{}: {}", name, trouble.words));
  if (!trouble.for_good && waited_ - *waiting.troubled <= limits_.image) return std::nullopt;
  return Verdict{kNoImage, "does not start: " + trouble.words};
}

}  // namespace reckon::kubernetes
