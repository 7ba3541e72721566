#include "executor/kubernetes/interruption_log.h"

#include <catch2/catch.hpp>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;

namespace {

KeptInterruption failure(std::int64_t attempt, bool futile) {
  KeptInterruption kept;
  kept.record.attempt = attempt;
  kept.record.detail = "rank 0 ended with code 3";
  kept.futile = futile;
  return kept;
}

}  // namespace

TEST_CASE("interruptions are in the cluster at once, and what they cost when it is known") {
  const FakeKubectl fake(R"(
shift 2
case "$1 $2" in
  "patch configmap") printf '%s' "$7" > state ;;
  "get configmap") cat state ;;
esac)");
  const Kubectl kubectl = fake.kubectl();
  const RunState before{
      .run = "a", .interruptions = {failure(0, true), failure(1, true)}, .counted_from = 1};
  InterruptionLog log(kubectl, before);
  KeptInterruption open = failure(2, true);
  open.open = true;
  log.note(open);
  const auto noted = read_state(kubectl, "a");
  REQUIRE(noted);
  REQUIRE(noted->interruptions.size() == 3);
  CHECK(noted->interruptions[2].open);

  InterruptionRecord settled = open.record;
  settled.lost_steps = 20;
  log.settle(settled);
  const auto after = read_state(kubectl, "a");
  REQUIRE(after);
  REQUIRE(after->interruptions.size() == 3);
  CHECK(!after->interruptions[2].open);
  CHECK(after->interruptions[2].futile);
  CHECK(after->interruptions[2].record.lost_steps == 20);

  // Attempt 0 was before somebody resumed the run.
  const auto counted = log.counted(3);
  REQUIRE(counted.size() == 2);
  CHECK(counted[0].record.attempt == 1);
  CHECK(earlier_end(counted[1]).futile);
  CHECK(log.counted(2).size() == 1);

  // Somebody had asked for that.
  log.drop(2);
  CHECK(read_state(kubectl, "a")->interruptions.size() == 2);
}
