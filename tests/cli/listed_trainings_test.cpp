#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/run_reckon.h"

// `jobs:` with workloads under cluster.scheduler: its policy schedules them, as any other jobs.
using namespace reckon::test;

namespace {

/// The second asks for both nodes and waits for the first; the third is shorter than the first.
constexpr const char* kListedTrainings = R"(name: listed
cluster:
  provider: on_premises
  scheduler: {policy: POLICY}
  pools:
    - name: p
      nodes: 2
      accelerator: {type: A100-SXM4-80, count: 8}
      machine: {vcpu: 8, memory: 64GiB, network: 10Gbps}
jobs:
  - name: long
    gpus: 8
    workload: {model: resnet50_v1_5, dataset: imagenet, train: {epochs: 2},
               batch_per_accelerator: 64}
  - {name: wide, gpus: 16, submit: 1min, duration: 1h}
  - name: short
    gpus: 8
    submit: 2min
    workload: {model: resnet50_v1_5, dataset: imagenet, train: {epochs: 1},
               batch_per_accelerator: 64}
)";

std::string with_policy(const std::string& policy) {
  std::string text = kListedTrainings;
  return text.replace(text.find("POLICY"), 6, policy);
}

/// By job, the column of the jobs' CSV.
std::vector<double> column_of(const std::string& csv, const std::string& name) {
  std::istringstream lines(csv);
  std::vector<double> values;
  std::size_t column = 0;
  bool header = true;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::size_t at = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++at) {
      if (header && cell == name) column = at;
      if (!header && at == column) values.push_back(std::stod(cell));
    }
    header = false;
  }
  return values;
}

}  // namespace

TEST_CASE("trainings that a scenario lists are scheduled by the policy that it names") {
  const Workspace w;
  const auto starts_under = [&](const std::string& policy) {
    w.write("q.yaml", with_policy(policy));
    const Output r = w.run("simulate q.yaml --csv " + policy);
    INFO(r.err);
    REQUIRE(r.code == 0);
    return column_of(read_all(w.path(policy) / "jobs.csv"), "start_seconds");
  };
  const auto fifo = starts_under("fifo"), backfill = starts_under("easy_backfill");
  REQUIRE(fifo.size() == 3);
  REQUIRE(backfill.size() == 3);
  CHECK(fifo[0] == 0);
  CHECK(fifo[1] > 3600);  // when the first has ended
  CHECK(fifo[2] == Approx(fifo[1] + 3600));
  CHECK(backfill[1] == Approx(fifo[1]));  // not delayed by the third, which ends before
  CHECK(backfill[2] == Approx(120));
}

TEST_CASE("a policy that cannot schedule listed jobs is refused, with those that can") {
  const Workspace w;
  w.write("q.yaml", with_policy("fgd"));
  const Output r = w.run("simulate q.yaml");
  CHECK(r.code != 0);
  CHECK(contains(r.err, "policy fgd needs a trace, and the jobs are listed"));
  CHECK(contains(r.err, "easy_backfill"));
}
