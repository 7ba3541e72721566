#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "cli/run_reckon.h"
#include "executor/train/records/measurement_log.h"

using namespace reckon;
using namespace reckon::test;

namespace {

const std::string kDriver = "LD_LIBRARY_PATH='" RECKON_BINARY_DIR "/fake-nvml'";

std::set<std::string> kinds_of(const Measurements& probe) {
  std::set<std::string> kinds;
  for (const ProbeRecord& r : probe.probes) kinds.insert(r.kind);
  return kinds;
}

}  // namespace

TEST_CASE("probe measures this machine, between processes too, and writes what it measured") {
  const Workspace w;
  const Output r = w.run(
      "probe --item-time 2ms --processes 2 --model resnet18 --checkpoint-dir here --out p.jsonl");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto probe = read_measurement_log(w.path("p.jsonl"));
  REQUIRE(probe);
  REQUIRE(probe->machines.size() == 1);
  CHECK(probe->machines[0].cores >= 1);
  CHECK(probe->machines[0].seconds.count() > 0);
  CHECK(kinds_of(*probe).contains("point_to_point"));
  for (const char* kind :
       {"memory", "copy", "matrix_product", "convolution", "checkpoint_save", "checkpoint_restore",
        "data_loading", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"}) {
    INFO(kind);
    CHECK(kinds_of(*probe).contains(kind));
    std::string words = kind;
    std::ranges::replace(words, '_', ' ');
    CHECK(contains(r.out, words));
  }
  for (const ProbeRecord& p : probe->probes) {
    INFO(p.kind << " " << p.item);
    CHECK(p.median.count() > 0);
    CHECK(p.processes == (p.bus_bandwidth.v > 0 || p.kind == "point_to_point" ? 2 : 1));
  }
  CHECK(std::filesystem::is_empty(w.path("here")));  // nothing is left behind
}

TEST_CASE("probe prints its records as JSON lines") {
  const Workspace w;
  const Output r = w.run("probe --item-time 1ms --threads 1 --format json");
  REQUIRE(r.code == 0);
  const auto probe = parse_measurements("stdout", r.out);
  REQUIRE(probe);
  CHECK(probe->machines.at(0).threads == 1);
  CHECK_FALSE(kinds_of(*probe).contains("dispatch"));  // one thread waits for none
}

TEST_CASE("the driver's GPUs are described, and no driver is said to be none") {
  const Workspace w;
  const Output seen = w.run("probe --item-time 1ms --threads 1 --out p.jsonl", kDriver);
  REQUIRE(seen.code == 0);
  CHECK(contains(seen.out,
                 "NVIDIA Test 80GB, 80.0 GiB, 0.34 GHz of 1.98 GHz, 17 NVLinks, driver "
                 "570.86.15"));
  CHECK(contains(seen.out, "described, not measured"));
  const auto probe = read_measurement_log(w.path("p.jsonl"));
  REQUIRE(probe);
  REQUIRE(probe->accelerators.size() == 2);
  CHECK(probe->accelerators[1].index == 1);
  CHECK(probe->accelerators[1].memory.v == 85'899'345'920.0);
  CHECK_FALSE(probe->accelerators[1].pcie_generation);  // the driver has no such entry
  CHECK_FALSE(probe->accelerators[1].celsius);          // it does not say
  CHECK(contains(w.run("doctor", kDriver).out, "2 visible: NVIDIA Test 80GB, NVIDIA Test 80GB"));
}

TEST_CASE("what probe cannot do is said before it measures, or with the reason") {
  const Workspace w;
  const Output model = w.run("probe --model resnet81");
  CHECK(model.code == 2);
  CHECK(contains(model.err, "no model is named 'resnet81'; did you mean 'resnet18'?"));
  CHECK(w.run("probe --processes 0").code == 2);
  CHECK(w.run("probe --item-time soon").code == 2);
  CHECK(w.run("probe --model resnet18 --sequence-length 128").code == 2);
  CHECK(w.run("probe scenario.yaml").code == 2);
  const Output rank = w.run("probe", "RANK=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1");
  CHECK(rank.code == 2);
  CHECK(contains(rank.err, "RANK"));
  w.write("file", "no folder");
  const Output folder = w.run("probe --item-time 1ms --checkpoint-dir file");
  CHECK(folder.code == 3);
  CHECK(contains(folder.err, "cannot create"));
}
