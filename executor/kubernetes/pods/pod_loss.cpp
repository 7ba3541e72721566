#include "executor/kubernetes/pods/pod_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/kubernetes/pods/cloud_names.h"
#include "executor/launch/process.h"
#include "executor/train/stop_signal.h"

namespace reckon::kubernetes {
namespace {

constexpr int kKilled = 137;     // 128 + SIGKILL, as a shell counts
constexpr int kNoProgram = 127;  // likewise

const EventView* event_of(std::span<const EventView> events, std::string_view reason) {
  const auto found =
      std::ranges::find_if(events, [&](const EventView& e) { return e.reason == reason; });
  return found != events.end() ? &*found : nullptr;
}

std::string with(std::string text, const std::string& more) {
  return more.empty() ? text : fmt::format("{}: {}", text, more);
}

bool one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool is_taken_back(const NodeView& node) {
  return std::ranges::any_of(node.taints, [](const std::string& taint) {
    return std::ranges::find(kReclaimTaints, taint) != kReclaimTaints.end();
  });
}

/// What took it away from outside; finished: nothing did.
PodLoss taken(const PodView& pod, std::span<const EventView> events,
              const std::optional<NodeView>& node, bool node_gone) {
  const std::string where = pod.node.empty() ? "its node" : pod.node;
  if (pod.reason == "Evicted")
    return {PodEnd::evicted, kKilled, with("was evicted by " + where, pod.message)};
  const EventView* preempted = event_of(events, "Preempted");
  if (pod.disruption == "PreemptionByScheduler" ||
      one_of(pod.reason, {"Preempting", "Preempted"}) || preempted != nullptr)
    return {PodEnd::preempted, kKilled,
            with("was preempted by a pod of a higher priority",
                 preempted != nullptr ? preempted->message : pod.message)};
  if (pod.disruption == "TerminationByKubelet" ||
      one_of(pod.reason, {"Shutdown", "NodeShutdown", "Terminated"}) ||
      (node && is_taken_back(*node)))
    return {PodEnd::node_shut_down, kKilled, fmt::format("{} was reclaimed or shut down", where)};
  const bool by_taint = pod.disruption == "DeletionByTaintManager" ||
                        event_of(events, "TaintManagerEviction") != nullptr;
  if (node_gone || pod.disruption == "DeletionByPodGC" || pod.reason == "NodeLost" ||
      (node && !node->ready) || (by_taint && !(node && node->cordoned)))
    return {PodEnd::node_lost, kKilled, fmt::format("{} is lost", where)};
  if (pod.disruption == "EvictionByEvictionAPI" || (pod.deleting && node && node->cordoned))
    return {PodEnd::drained, kKilled, fmt::format("was evicted: {} is being drained", where)};
  if (pod.deleting) return {PodEnd::deleted, kKilled, "was deleted"};
  return {};
}

}  // namespace

PodLoss loss_of(const PodView& pod, std::span<const EventView> events,
                const std::optional<NodeView>& node, bool node_gone) {
  if (pod.phase == "Succeeded") return {};
  if (pod.ended_as == "OOMKilled")
    return {PodEnd::out_of_memory, pod.exit_code.value_or(kKilled),
            "ran out of memory: it needs more than its limit"};
  // What the container's runtime could not start, nobody can: no such program in the image, or one
  // that cannot be run. containerd gives it the code 128, others 126 or 127.
  if (one_of(pod.ended_as, {"StartError", "ContainerCannotRun"}))
    return {PodEnd::failed, kNoProgram, with("could not be started", pod.ended_message)};
  PodLoss loss = taken(pod, events, node, node_gone);
  if (pod.exit_code) loss.code = *pod.exit_code;
  if (loss.end != PodEnd::finished) {
    if (loss.code == 0) loss.code = kExitStoppedOnRequest;
    return loss;
  }
  if (!pod.ended()) return {PodEnd::deleted, kKilled, "was deleted"};
  if (loss.code == 0) loss.code = kKilled;  // failed, and nobody saw its container end
  constexpr int kSignals = 128;
  const ProcessEnd end =
      loss.code > kSignals ? ProcessEnd{0, loss.code - kSignals} : ProcessEnd{loss.code, 0};
  loss.end = PodEnd::failed;
  loss.words = with(to_text(end), pod.message);
  return loss;
}

Interruption interruption_of(const PodLoss& loss, bool foreign) {
  switch (loss.end) {
    case PodEnd::preempted:
    case PodEnd::node_shut_down:
      return Interruption::preemption;
    case PodEnd::drained:
      return Interruption::maintenance;
    case PodEnd::failed:  // stopped behind a checkpoint, and nobody here asked it to
      return !foreign && loss.code == kExitStoppedOnRequest ? Interruption::preemption
                                                            : Interruption::failure;
    case PodEnd::finished:
    case PodEnd::out_of_memory:
    case PodEnd::evicted:
    case PodEnd::node_lost:
    case PodEnd::deleted:
      break;
  }
  return Interruption::failure;
}

StartTrouble start_trouble(const PodView& pod) {
  if (pod.waiting.empty() || one_of(pod.waiting, {"ContainerCreating", "PodInitializing"}))
    return {};
  const std::string words = with(pod.waiting, pod.waiting_message);
  return {words, one_of(pod.waiting, {"InvalidImageName", "ErrImageNeverPull"})};
}

}  // namespace reckon::kubernetes
