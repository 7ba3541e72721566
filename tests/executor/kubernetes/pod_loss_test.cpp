#include "executor/kubernetes/pods/pod_loss.h"

#include <catch2/catch.hpp>

using namespace reckon;
using namespace reckon::kubernetes;

namespace {

/// A pod as the API server gives it, with `status` over what a running one has.
Json pod(const Json& status, const Json& metadata = Json::object()) {
  Json p = Json::parse(R"({
    "metadata": {"name": "train-0-worker-1-x7k2p", "uid": "u1",
                 "creationTimestamp": "2026-11-22T03:00:00Z",
                 "labels": {"reckon/attempt": "3"}, "annotations": {"reckon/first-rank": "1"}},
    "spec": {"nodeName": "node1"},
    "status": {"phase": "Running"}})");
  p["status"].merge_patch(status);
  p["metadata"].merge_patch(metadata);
  return p;
}

Json ended(int code, const std::string& reason = "Error") {
  return {{"phase", code == 0 ? "Succeeded" : "Failed"},
          {"containerStatuses",
           {{{"state",
              {{"terminated",
                {{"exitCode", code},
                 {"reason", reason},
                 {"startedAt", "2026-11-22T03:00:02Z"},
                 {"finishedAt", "2026-11-22T03:00:09Z"}}}}}}}}};
}

const Json kDeleting = {{"deletionTimestamp", "2026-11-22T03:01:00Z"}};
const NodeView kReady{
    .name = "node1", .ready = true, .cordoned = false, .taints = {}, .created = {}};

PodLoss loss(const Json& p, const std::vector<EventView>& events = {},
             const std::optional<NodeView>& node = kReady, bool gone = false) {
  return loss_of(pod_view(p), events, node, gone);
}

}  // namespace

TEST_CASE("a pod's rank is its group's first and its index in an indexed job") {
  CHECK(pod_view(pod({})).rank == 1);
  const Json indexed = {{"annotations", {{"batch.kubernetes.io/job-completion-index", "4"}}}};
  const PodView view = pod_view(pod(ended(1), indexed));
  CHECK(view.rank == 5);
  CHECK(view.attempt == 3);
  CHECK(view.node == "node1");
  CHECK(view.exit_code == 1);
  CHECK(*view.finished - *view.started == std::chrono::seconds(7));
  CHECK(pod_view(Json::object()).rank == -1);
}

TEST_CASE("times have fractions or none") {
  REQUIRE(parse_time("2026-11-22T03:00:00Z"));
  CHECK(*parse_time("2026-11-22T03:00:01.25Z") - *parse_time("2026-11-22T03:00:00Z") ==
        std::chrono::milliseconds(1250));
  CHECK(!parse_time("2026-11-22"));
  CHECK(!parse_time("2026-11-22T03:00:00+01:00"));
  CHECK(!parse_time(""));
}

TEST_CASE("a container that ended by itself is told by its code or signal") {
  CHECK(loss(pod(ended(0))).end == PodEnd::finished);
  CHECK(loss(pod(ended(3))).words == "ended with code 3");
  CHECK(loss(pod(ended(139))).words == "was killed by signal 11 (Segmentation fault)");
  CHECK(interruption_of(loss(pod(ended(3))), false) == Interruption::failure);
  // 75 that nobody here asked for: somebody takes the node.
  CHECK(interruption_of(loss(pod(ended(75))), false) == Interruption::preemption);
  CHECK(interruption_of(loss(pod(ended(75))), true) == Interruption::failure);
}

TEST_CASE("memory above the limit, evictions, preemptions and lost nodes are told apart") {
  CHECK(loss(pod(ended(137, "OOMKilled"))).end == PodEnd::out_of_memory);
  const PodLoss evicted = loss(pod({{"phase", "Failed"},
                                    {"reason", "Evicted"},
                                    {"message", "The node was low on resource: memory."}}));
  CHECK(evicted.end == PodEnd::evicted);
  CHECK(evicted.words == "was evicted by node1: The node was low on resource: memory.");

  const PodLoss preempted =
      loss(pod({}, kDeleting), {{.kind = "Pod",
                                 .name = "train",
                                 .reason = "Preempted",
                                 .message = "Preempted by team/big on node node1",
                                 .at = {}}});
  CHECK(preempted.end == PodEnd::preempted);
  CHECK(interruption_of(preempted, true) == Interruption::preemption);
  const Json condition = {
      {"conditions",
       {{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}}}};
  CHECK(loss(pod(condition, kDeleting)).end == PodEnd::preempted);

  NodeView silent = kReady;
  silent.ready = false;
  const PodLoss lost = loss(pod({}), {}, silent);
  CHECK(lost.end == PodEnd::node_lost);
  CHECK(lost.words == "node1 is lost");
  CHECK(lost.code == 137);
  CHECK(loss(pod({}), {}, std::nullopt, true).end == PodEnd::node_lost);
  CHECK(interruption_of(lost, true) == Interruption::failure);
}

TEST_CASE("a node that is drained or taken back is no failure") {
  NodeView cordoned = kReady;
  cordoned.cordoned = true;
  const PodLoss drained = loss(pod(ended(75), kDeleting), {}, cordoned);
  CHECK(drained.end == PodEnd::drained);
  CHECK(drained.code == 75);
  CHECK(interruption_of(drained, true) == Interruption::maintenance);
  NodeView reclaimed = kReady;
  reclaimed.taints = {"cloud.google.com/impending-node-termination"};
  CHECK(interruption_of(loss(pod(ended(75), kDeleting), {}, reclaimed), true) ==
        Interruption::preemption);
  CHECK(loss(pod({{"phase", "Failed"}, {"reason", "Terminated"}})).end == PodEnd::node_shut_down);
}

TEST_CASE("a pod that somebody deletes is told so, also when it saved its work first") {
  CHECK(loss(pod({}, kDeleting)).words == "was deleted");
  CHECK(loss(pod({})).end == PodEnd::deleted);  // gone without a word, as by --force
  CHECK(loss(pod(ended(75), kDeleting)).end == PodEnd::deleted);
}

TEST_CASE("an image that cannot be had is trouble, one that is pulled is not") {
  const auto waiting = [](const char* reason, const char* message) {
    return pod_view(
        pod({{"phase", "Pending"},
             {"containerStatuses",
              {{{"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}}}}));
  };
  CHECK(start_trouble(waiting("ContainerCreating", "")).words.empty());
  CHECK(start_trouble(waiting("ErrImagePull", "not found")).words == "ErrImagePull: not found");
  CHECK(!start_trouble(waiting("ImagePullBackOff", "")).for_good);
  CHECK(start_trouble(waiting("ErrImageNeverPull", "")).for_good);
  CHECK(start_trouble(waiting("InvalidImageName", "")).for_good);
}
