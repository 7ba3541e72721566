#include "executor/kubernetes/plan_state.h"

#include <catch2/catch.hpp>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;

namespace {

RunState state_of_three() {
  RunState state{.run = "a", .plan = "the plan", .started = "2026-11-28T10:00:00.000Z"};
  state.plan_from = 3;
  state.parts = {{0, Seconds{0}}, {3, Seconds{120.5}}};
  DecisionRecord decision;
  decision.attempt = 2;
  decision.applied = true;
  decision.what = "two more workers";
  decision.changes = {"cluster.pools.here.nodes=4"};
  decision.kept_miss = 0.9;
  state.decisions = {decision};
  EndRecord end;
  end.attempt = 2;
  end.at = Seconds{118};
  end.steps_done = 500;
  end.spent = 1.25;
  state.ends = {end};
  return state;
}

}  // namespace

TEST_CASE("which plan a run is of, its parts and its decisions are in the cluster") {
  // An apply puts its object where `get` finds it, as a patch of `data` changes it.
  const FakeKubectl fake(R"(
shift 2
case "$1 $2" in
  "apply --server-side") cat > state ;;
  "patch configmap") printf '%s' "$7" > patched ;;
  "get configmap") cat state ;;
esac)");
  const Kubectl kubectl = fake.kubectl();
  const RunState state = state_of_three();
  write_plan_state(kubectl, state);
  const auto read = read_state(kubectl, "a");
  REQUIRE(read);
  CHECK(read->plan == "the plan");
  CHECK(read->plan_from == 3);
  REQUIRE(read->parts.size() == 2);
  CHECK(read->parts[1].attempt == 3);
  CHECK(read->parts[1].at.count() == 120.5);
  REQUIRE(read->decisions.size() == 1);
  CHECK(to_line(read->decisions[0]) == to_line(state.decisions[0]));
  REQUIRE(read->ends.size() == 1);
  CHECK(to_line(read->ends[0]) == to_line(state.ends[0]));

  write_ends(kubectl, "a", state.ends);
  const Json patch = Json::parse(fake.read("patched"));
  CHECK(patch.at("data").size() == 1);
  RunState ends;
  read_plan_data(patch.at("data"), ends);
  REQUIRE(ends.ends.size() == 1);
  CHECK(*ends.ends[0].spent == 1.25);
}

TEST_CASE("a run that an older reckon began has one plan and no parts") {
  RunState state;
  read_plan_data(Json::object(), state);
  CHECK(state.plan_from == 0);
  CHECK(state.parts.empty());
  read_plan_data({{"parts", "[3, {\"attempt\": 1}]"}, {"ends", "no list"}, {"decisions", "[{}]"}},
                 state);
  REQUIRE(state.parts.size() == 1);
  CHECK(state.parts[0].attempt == 1);
  CHECK(state.ends.empty());
  CHECK(state.decisions.empty());
}

TEST_CASE("a phase is written over the object that was read, or not at all") {
  const FakeKubectl fake(R"(
shift 2
echo "$*" >> said
case "$*" in
  "get configmap"*) echo '{"metadata": {"resourceVersion": "17"}}' ;;
  *=17) echo 'Error from server (Conflict): the object has been modified' >&2; exit 1 ;;
esac)");
  const Kubectl kubectl = fake.kubectl();
  const auto read = read_state(kubectl, "a");
  REQUIRE(read);
  CHECK(read->version == "17");
  try {
    set_phase(kubectl, "a", RunPhase::stopping, "asked", {}, read->version);
    FAIL("it was written");
  } catch (const KubectlError& error) {
    CHECK(error.failure() == KubectlFailure::conflict);
  }
  // What its launcher counts from says nothing of the phase.
  count_from(kubectl, "a", 3);
  CHECK(fake.read("said").find("--overwrite reckon/counted-from=3\n") != std::string::npos);
}
