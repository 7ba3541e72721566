#include "executor/kubernetes/pods/pod_log.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using reckon::test::FakeKubectl;

namespace {

std::string read_to_end(const Kubectl& kubectl, bool ended) {
  std::string lines;
  PodLog log(kubectl, "pod-1", [&](std::string_view line) { lines += std::string(line) + '|'; });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!log.done() && std::chrono::steady_clock::now() < until) {
    log.poll(ended);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return log.done() ? lines : lines + "never done";
}

}  // namespace

TEST_CASE("a log is read once, and its times are left out") {
  const FakeKubectl fake(
      "echo \"$@\" >> calls\n"
      "echo '2026-11-22T03:00:00.1Z one'; echo '2026-11-22T03:00:00.123456789Z two words'");
  CHECK(read_to_end(fake.kubectl(), true) == "one|two words|");
  CHECK(fake.read("calls") == "--namespace ns logs pod-1 --follow --timestamps\n");
}

TEST_CASE("behind a lost connection no line is missing and none is there twice") {
  const FakeKubectl fake(R"(
echo "$@" >> calls
echo '2026-11-22T03:00:00.1Z one'
echo '2026-11-22T03:00:00.25Z two'
[ $(wc -l < calls) = 1 ] && { echo 'error: unexpected EOF' >&2; exit 1; }
echo '2026-11-22T03:00:00.3Z three')");
  CHECK(read_to_end(fake.kubectl(), true) == "one|two|three|");
  CHECK(fake.read("calls").find("--since-time 2026-11-22T03:00:00Z") != std::string::npos);
}

TEST_CASE("what a kubelet says in place of a log is no line of the program") {
  const FakeKubectl fake(
      "echo '2026-11-22T03:00:00.1Z one'; echo 'unable to retrieve container logs for "
      "containerd://2'; "
      "echo 'a bar, drawn over'");
  CHECK(read_to_end(fake.kubectl(), true) == "one|a bar, drawn over|");
}

TEST_CASE("the log of a pod that is gone is over") {
  const FakeKubectl fake(
      "echo 'Error from server (NotFound): pods \"pod-1\" not found' >&2; exit 1");
  CHECK(read_to_end(fake.kubectl(), true).empty());
}

TEST_CASE("times before lines sort as text, whatever their number of digits") {
  std::string_view rest;
  const std::string early = sortable_time("2026-11-22T03:00:00.1Z a", rest);
  const std::string late = sortable_time("2026-11-22T03:00:00.12Z b c", rest);
  CHECK(early < late);
  CHECK(rest == "b c");
  CHECK(sortable_time("2026-11-22T03:00:00Z a", rest) < early);
  CHECK(sortable_time("no time here, but a long enough line", rest).empty());
  CHECK(rest == "no time here, but a long enough line");
}
