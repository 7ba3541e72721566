#include "executor/kubernetes/leftovers.h"

#include <catch2/catch.hpp>
#include <string>

#include "executor/kubernetes/fake_kubectl.h"
#include "sim/base/text/base64.h"
#include "sim/scenario/artifact/artifact.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;

namespace {

const Time kNow = *parse_time("2026-11-28T12:00:00Z");

HourlyRate usd_an_hour(double usd) { return to_hourly_rate(UsdPerSecond{usd / 3600}); }

/// A plan whose workers' nodes cost 3 USD an hour, and a GB of storage 0.001 USD.
std::string priced_plan() {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::single, 1);
  for (PlannedPool& pool : plan.pools) {
    pool.price.known = true;
    pool.price.machine = usd_an_hour(2);
    pool.price.accelerators = usd_an_hour(1);
  }
  plan.storage_per_gb = usd_an_hour(0.001);
  return to_base64(write_artifact({.plan = plan}));
}

Json named(const std::string& name, const std::string& run) {
  return {{"metadata",
           {{"name", name},
            {"uid", name},
            {"namespace", "ns"},
            {"labels", {{"app.kubernetes.io/instance", run}}}}}};
}

struct LeftoverExample {
  LeftoverExample() {
    for (Json* list : {&view.runs, &view.jobs, &view.pods, &view.claims, &view.leases, &view.nodes,
                       &view.other_pods})
      *list = {{"items", Json::array()}};
  }
  static void add(Json& list, Json item) { list["items"].push_back(std::move(item)); }

  void run(const std::string& name, const std::string& phase) {
    static const std::string kPlan = priced_plan();
    Json map = named(name + "-run", name);
    map["metadata"]["annotations"] = {{"reckon/phase", phase}};
    map["binaryData"] = {{"plan.reckon", kPlan}};
    add(view.runs, std::move(map));
    Json job = named(name + "-0-worker", name);
    job["spec"]["template"]["metadata"]["annotations"] = {{"reckon/first-rank", "0"}};
    add(view.jobs, std::move(job));
  }
  void pod(const std::string& name, const std::string& run, const std::string& node,
           const std::string& phase) {
    Json pod = named(name, run);
    pod["metadata"]["annotations"] = {{"reckon/first-rank", "0"}};
    pod["metadata"]["labels"]["app.kubernetes.io/component"] = "worker";
    pod["spec"]["nodeName"] = node;
    pod["status"]["phase"] = phase;
    add(view.pods, pod);
    add(view.other_pods, std::move(pod));
  }
  void lease(const std::string& run, const std::string& holder, const std::string& renewed) {
    Json lease = named(run + "-launcher", run);
    lease["spec"] = {{"leaseDurationSeconds", 15}, {"renewTime", renewed}};
    if (!holder.empty()) lease["spec"]["holderIdentity"] = holder;
    add(view.leases, std::move(lease));
  }
  void claim(const std::string& run) {
    Json claim = named(run + "-checkpoints", run);
    claim["spec"]["resources"]["requests"]["storage"] = "10G";
    add(view.claims, std::move(claim));
  }
  void node(const std::string& name, const std::string& cordoned_by = "") {
    Json node = {{"metadata", {{"name", name}}}};
    if (!cordoned_by.empty()) {
      node["metadata"]["annotations"] = {{kCordonedBy, cordoned_by}};
      node["spec"]["unschedulable"] = true;
    }
    add(view.nodes, std::move(node));
  }
  Leftovers look() const { return leftovers_of(view, kNow); }

  LeftoverView view;
};

const Leftover* find(const Leftovers& leftovers, Leftover::Kind kind, const std::string& name) {
  for (const Leftover& left : leftovers.items)
    if (left.kind == kind && left.name == name) return &left;
  return nullptr;
}

}  // namespace

TEST_CASE("a run that is watched has left nothing, whatever it has") {
  LeftoverExample e;
  e.run("a", "running");
  e.lease("a", "host_1_00", "2026-11-28T11:59:55.000000Z");
  e.pod("a-0", "a", "node1", "Running");
  e.claim("a");
  e.node("node1");
  CHECK(e.look().items.empty());
  CHECK(e.look().total.nano_usd_per_hour == 0);
}

TEST_CASE("pods of a run whose launcher is gone are left, with their node, its claim is not") {
  LeftoverExample e;
  e.run("a", "running");
  e.lease("a", "host_1_00", "2026-11-28T11:50:00.000000Z");
  e.pod("a-0", "a", "node1", "Running");
  e.pod("a-1", "a", "node1", "Running");
  e.pod("a-2", "a", "", "Pending");
  e.pod("a-3", "a", "node2", "Failed");
  e.claim("a");
  const Leftovers left = e.look();
  REQUIRE(left.items.size() == 2);
  const Leftover* jobs = find(left, Leftover::Kind::jobs, "a");
  REQUIRE(jobs != nullptr);
  CHECK(jobs->why ==
        "no launcher: the launcher on host (process 1) was last heard of at "
        "2026-11-28T11:50:00.000000Z");
  CHECK(jobs->jobs == 1);
  CHECK(jobs->pods_running == 2);
  CHECK(jobs->pods_waiting == 1);
  CHECK(jobs->pods_ended == 1);
  CHECK(jobs->nodes == std::vector<std::string>{"node1"});
  CHECK(jobs->price == usd_an_hour(3));  // one node, which two pods hold
  REQUIRE(find(left, Leftover::Kind::node, "node1") != nullptr);
  CHECK(left.total == usd_an_hour(3));  // once
}

TEST_CASE("what a run that is over has left costs its nodes and its claim") {
  LeftoverExample e;
  e.run("a", "stopped");
  e.pod("a-0", "a", "node1", "Running");
  e.claim("a");
  const Leftovers left = e.look();
  const Leftover* claim = find(left, Leftover::Kind::claim, "a-checkpoints");
  REQUIRE(claim != nullptr);
  CHECK(claim->size->v == Approx(10e9));
  CHECK(claim->price == usd_an_hour(0.01));  // 10 GB
  CHECK(claim->why == "stopped");
  CHECK(left.total == usd_an_hour(3.01));
  CHECK(left.unknown_prices == 0);
}

TEST_CASE("a node with a pod of somebody else is not left, and a daemon's pod does not keep it") {
  LeftoverExample e;
  e.run("a", "failed");
  e.pod("a-0", "a", "node1", "Running");
  e.pod("a-1", "a", "node2", "Running");
  Json other = named("web", "");
  other["spec"]["nodeName"] = "node1";
  other["status"]["phase"] = "Running";
  LeftoverExample::add(e.view.other_pods, other);
  other["metadata"]["name"] = other["metadata"]["uid"] = "log";
  other["metadata"]["ownerReferences"] = Json::array({{{"kind", "DaemonSet"}}});
  other["spec"]["nodeName"] = "node2";
  LeftoverExample::add(e.view.other_pods, other);
  const Leftovers left = e.look();
  CHECK(find(left, Leftover::Kind::node, "node1") == nullptr);
  CHECK(find(left, Leftover::Kind::node, "node2") != nullptr);
  CHECK(find(left, Leftover::Kind::jobs, "a")->price == usd_an_hour(3));
}

TEST_CASE("a node with a pod of a run that is watched is not left") {
  LeftoverExample e;
  e.run("a", "failed");
  e.run("b", "running");
  e.lease("b", "host_1_00", "2026-11-28T11:59:55.000000Z");
  e.pod("a-0", "a", "node1", "Running");
  e.pod("b-0", "b", "node1", "Running");
  const Leftovers left = e.look();
  CHECK(left.items.size() == 1);
  CHECK(left.total.nano_usd_per_hour == 0);
}

TEST_CASE("a node that reckon cordoned is told until somebody takes it back") {
  LeftoverExample e;
  e.run("a", "running");
  e.lease("a", "host_1_00", "2026-11-28T11:59:55.000000Z");
  e.node("node1", "ns/a");
  const Leftovers left = e.look();
  REQUIRE(left.items.size() == 1);
  CHECK(left.items[0].why == "cordoned by reckon");
  CHECK(left.items[0].price == usd_an_hour(3));
  e.view.nodes["items"][0]["spec"].erase("unschedulable");
  CHECK(e.look().items.empty());
  e.view.nodes["items"][0]["spec"]["unschedulable"] = true;
  e.view.run = "b";  // of which alone it was asked
  CHECK(e.look().items.empty());
}

TEST_CASE("without its run's plan a price is unknown, and counted as that") {
  LeftoverExample e;
  e.claim("gone");
  const Leftovers left = e.look();
  REQUIRE(left.items.size() == 1);
  CHECK(!left.items[0].price);
  CHECK(left.items[0].why == "no run of that name: deleted, or a probe's");
  CHECK(left.unknown_prices == 1);
}

TEST_CASE("manifests that somebody exported and applied are theirs") {
  LeftoverExample e;
  e.pod("a-0", "a", "node1", "Running");
  e.view.pods["items"][0]["metadata"]["annotations"] = Json::object();
  e.claim("a");
  CHECK(e.look().items.empty());
}

TEST_CASE("where Leases may not be looked at nobody's run is taken for left") {
  LeftoverExample e;
  e.run("a", "running");
  e.pod("a-0", "a", "node1", "Running");
  CHECK(e.look().items.size() == 2);  // none holds one
  e.view.leases = Json();
  CHECK(e.look().items.empty());
}

TEST_CASE("what may not be looked at is said, and the rest is told") {
  const FakeKubectl fake(R"(
case "$3" in
  */nodes | */api/v1/pods\?field*)
    echo 'Error from server (Forbidden): not for you' >&2; exit 1 ;;
  *instance%3Da*/pods* | */namespaces/ns/pods*) echo '{"items": [{"spec": {"nodeName": "n"},
    "status": {"phase": "Running"}}]}' ;;
  */namespaces/ns/*instance%3Da*) echo '{"items": []}' ;;
  *) echo "what is $*?" >&2; exit 9 ;;
esac
)");
  const LeftoverView view = look_for_leftovers(fake.kubectl(), "ns", "a");
  REQUIRE(view.not_seen.size() == 2);
  CHECK(view.not_seen[0].starts_with("without nodes that were cordoned: "));
  CHECK(view.not_seen[1].starts_with("without other pods on the nodes: "));
  CHECK(view.nodes.is_null());
}
