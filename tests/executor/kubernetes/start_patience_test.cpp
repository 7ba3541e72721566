#include "executor/kubernetes/start_patience.h"

#include <catch2/catch.hpp>

#include <thread>
#include <vector>

using namespace reckon;
using namespace reckon::kubernetes;

namespace {

/// Nothing is waited for at all, or for an hour: no test is about real time.
constexpr Seconds kNone{-1}, kHour{3600};

struct PatienceExample {
  PatienceExample(Seconds pending, Seconds image)
      : patience({.pending = pending, .image = image},
                 [this](const std::string& text) { told.push_back(text); }) {}
  std::optional<StartPatience::Verdict> look(const PodView* pod, const std::string& no_pod = "") {
    patience.pass(true);
    return patience.look_at(0, "rank 0", pod, no_pod);
  }
  std::vector<std::string> told;
  StartPatience patience;
};

PodView placed(const std::string& waiting = "") {
  PodView pod;
  pod.name = "a-0-worker-0";
  pod.node = "node1";
  pod.waiting = waiting;
  return pod;
}

}  // namespace

TEST_CASE("a pod without a node is given up when there is no room for too long") {
  PodView pod;
  pod.unschedulable = "0/2 nodes are available";
  PatienceExample patient(kHour, kHour);
  CHECK(!patient.look(&pod));
  CHECK(!patient.look(&pod));
  CHECK(patient.told == std::vector<std::string>{"no node yet: 0/2 nodes are available"});
  const auto verdict = PatienceExample(kNone, kHour).look(&pod);
  REQUIRE(verdict);
  CHECK(verdict->code == StartPatience::kNoRoom);
  CHECK(verdict->words.find("has no node after") == 0);
  CHECK(
      PatienceExample(kNone, kHour).look(nullptr, "exceeded quota")->words.find("exceeded quota") !=
      std::string::npos);
}

TEST_CASE("an image is waited for from its first trouble on, however long a node was waited for") {
  PatienceExample e(kHour, Seconds{0});
  e.patience.pass(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for a node
  PodView pod = placed("ErrImagePull");
  CHECK(!e.look(&pod));  // its patience begins here
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto verdict = e.look(&pod);
  REQUIRE(verdict);
  CHECK(verdict->code == StartPatience::kNoImage);
  CHECK(verdict->words == "does not start: ErrImagePull");
  CHECK(e.told == std::vector<std::string>{"rank 0: ErrImagePull"});
  pod = placed("InvalidImageName");  // nobody needs to wait for that
  CHECK(PatienceExample(kHour, kHour).look(&pod));
}

TEST_CASE("a pull that went on after all is no trouble any more") {
  PatienceExample e(kHour, Seconds{0});
  PodView pod = placed("ErrImagePull");
  CHECK(!e.look(&pod));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PodView pulls = placed("ContainerCreating");
  CHECK(!e.look(&pulls));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(!e.look(&pod));  // new trouble
}

TEST_CASE("time in which the cluster does not answer is not held against a pod") {
  PatienceExample e(Seconds{0}, Seconds{0});
  PodView pod = placed("ErrImagePull");
  e.patience.pass(false);
  CHECK(!e.patience.look_at(0, "rank 0", &pod, ""));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  e.patience.pass(false);
  CHECK(!e.patience.look_at(0, "rank 0", &pod, ""));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  e.patience.pass(true);
  CHECK(e.patience.look_at(0, "rank 0", &pod, ""));
}
