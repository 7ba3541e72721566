#include "sim/serving/replica_autoscaler.h"

#include <catch2/catch.hpp>

using namespace reckon;
using namespace std::chrono_literals;

// Kubernetes documentation, "Horizontal Pod Autoscaling", "Algorithm details".

namespace {

ReplicaRules rules(double target = 0.5) {
  return {.initial = 1, .min = 1, .max = 100, .standby = 0, .target_utilization = target};
}
SimTime at(Seconds s) { return SimTime{} + to_clock(s); }

/// `ready` replicas that are each busy for `share` of the time, of `current`.
ReplicaLoad load(int current, int ready, double share) { return {current, ready, ready * share}; }

}  // namespace

TEST_CASE("twice the target doubles the replicas, half of it halves them") {
  CHECK(recommended_replicas(load(3, 3, 1.0), rules()) == 6);
  CHECK(recommended_replicas(load(4, 4, 0.25), rules()) == 2);
  CHECK(recommended_replicas(load(3, 3, 0.6), rules()) == 4);  // ceil(3.6)
}

TEST_CASE("within the tolerance of a tenth nothing is done") {
  CHECK(recommended_replicas(load(10, 10, 0.55), rules()) == 10);
  CHECK(recommended_replicas(load(10, 10, 0.45), rules()) == 10);
  CHECK(recommended_replicas(load(10, 10, 0.56), rules()) == 12);  // ceil(11.2)
}

TEST_CASE("replicas that are starting count as idle where more are asked for") {
  // Two of four at 100 %: the mean of all four is 50 %, the target.
  CHECK(recommended_replicas(load(4, 2, 1.0), rules()) == 4);
  // Three of four at 100 %: 75 % of all, so 4 * 1.5.
  CHECK(recommended_replicas(load(4, 3, 1.0), rules()) == 6);
  // One of four at 100 %: counting the others as idle would ask for fewer, so nothing changes.
  CHECK(recommended_replicas(load(4, 1, 1.0), rules()) == 4);
}

TEST_CASE("without a replica that is ready nothing is known and nothing changes") {
  CHECK(recommended_replicas(load(3, 0, 0), rules()) == 3);
}

TEST_CASE("a look adds at most four replicas or as many as there are") {
  ReplicaAutoscaler a(rules(0.1));
  CHECK(a.look(at(0s), load(1, 1, 1.0)) == 5);
  CHECK(a.look(at(15s), load(5, 5, 1.0)) == 10);
  CHECK(a.look(at(30s), load(10, 10, 1.0)) == 20);
}

TEST_CASE("replicas go only when nobody asked for them in five minutes") {
  ReplicaAutoscaler a(rules());
  CHECK(a.look(at(0s), load(4, 4, 1.0)) == 8);
  CHECK(a.look(at(15s), load(8, 8, 0.1)) == 8);
  CHECK(a.look(at(300s), load(8, 8, 0.1)) == 8);
  CHECK(a.look(at(301s), load(8, 8, 0.1)) == 2);
}

TEST_CASE("what was asked for lately never adds replicas by itself") {
  ReplicaAutoscaler a(rules());
  CHECK(a.look(at(0s), load(2, 2, 1.0)) == 4);
  CHECK(a.look(at(15s), load(3, 3, 0.3)) == 3);
}

TEST_CASE("replicas stay between min and max") {
  ReplicaRules narrow = rules();
  narrow.min = 3;
  narrow.max = 5;
  ReplicaAutoscaler a(narrow);
  CHECK(a.look(at(0s), load(4, 4, 1.0)) == 5);
  ReplicaAutoscaler b(narrow);
  CHECK(b.look(at(0s), load(4, 4, 0.01)) == 4);
  CHECK(b.look(at(301s), load(4, 4, 0.01)) == 3);
}

TEST_CASE(
    "the number at the first look counts as asked for: nothing goes in the first five minutes") {
  ReplicaAutoscaler a(rules());
  CHECK(a.look(at(0s), load(10, 10, 0.05)) == 10);
  CHECK(a.look(at(300s), load(10, 10, 0.05)) == 10);
  CHECK(a.look(at(301s), load(10, 10, 0.05)) == 1);
}

TEST_CASE("a look each second adds no more in 15 s than one look would") {
  ReplicaAutoscaler a(rules(0.1));
  int replicas = 2;
  for (int second = 0; second < 15; ++second)
    replicas = a.look(at(Seconds{double(second)}), load(replicas, replicas, 1.0));
  CHECK(replicas == 6);
  CHECK(a.look(at(15s), load(6, 6, 1.0)) == 12);
}

TEST_CASE("the most that was asked for is that of the last five minutes, not of all times") {
  ReplicaAutoscaler a(rules());
  CHECK(a.look(at(0s), load(4, 4, 0.5)) == 4);
  CHECK(a.look(at(100s), load(4, 4, 0.6)) == 5);
  CHECK(a.look(at(200s), load(5, 5, 0.4)) == 5);  // 4
  CHECK(a.look(at(390s), load(5, 5, 0.2)) == 5);  // 2, but 5 at 100 s
  CHECK(a.look(at(401s), load(5, 5, 0.2)) == 4);  // 2, but 4 at 200 s
  CHECK(a.look(at(501s), load(4, 4, 0.2)) == 2);
}
