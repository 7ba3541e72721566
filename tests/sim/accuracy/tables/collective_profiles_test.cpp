#include <catch2/catch.hpp>
#include <cmath>

#include "sim/accuracy/tables/tables.h"
#include "sim/step/network/collective_times.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

const std::string kHeader =
    "kind,system,accelerator,nodes,ranks_per_node,collective,message_bytes,latency_us,peak_GBps,"
    "share_of_peak_by_size,time_us,source\n";
constexpr double kHost = 20e-6;  // host.collective_call_s
const std::string kRoce = "\"H100, NVSwitch, one 400 Gb/s RoCE NIC a GPU\",H100-SXM5-80,";

ScoredTable scored(const std::string& rows, TextPool& pool) {
  auto table = score_collective_profiles("p.csv", kHeader + rows, pool, test::shipped_catalog());
  REQUIRE(table);
  return std::move(*table);
}

}  // namespace

TEST_CASE("a fit is scored by its own time of one GiB, at the share of the peak it reaches there") {
  TextPool pool;
  // 160 us + 2^30 B / 200 GB/s = 5.52870912 ms; bus bandwidth 2 x 7/8 of size / time.
  // 1 GiB is 2^27 B a rank, 64 B x 2^21: half way along 43 shares, of which the middle says 0.5.
  std::string shares = "\"";
  for (int i = 0; i < 43; ++i) shares += i < 21 ? "0.1 " : i == 21 ? "0.5 " : "1 ";
  shares.back() = '"';
  const ScoredTable table =
      scored("fit," + kRoce + "1,8,all_reduce,,160,200,,,x\n" +  //
                 "fit," + kRoce + "1,8,all_reduce,,160,400," + shares + ",,x\n",
             pool);
  REQUIRE(table.scored.runs.size() == 2);
  const double expected = 1.75 * double(1 << 30) / 5.52870912e-3 / 1e9;
  CHECK(table.scored.runs[0].measured == Approx(expected));
  CHECK(table.scored.runs[1].measured == Approx(expected));
  CHECK(table.scored.runs[0].figure == "all-reduce, fits at 1 GiB");
}

TEST_CASE("fewer ranks of a node use so many NICs where each GPU has one") {
  TextPool pool;
  const ScoredTable table = scored("fit," + kRoce + "4,1,all_gather,,170,50,,,x\n" +  //
                                       "fit," + kRoce + "4,2,all_gather,,170,100,,,x\n",
                                   pool);
  REQUIRE(table.scored.runs.size() == 2);
  const LinkClass& roce = *test::shipped_catalog().find_link("roce");
  const LinkClass& inside = *test::shipped_catalog().find_link("nvswitch4");
  // (n - 1) / n of 1 GiB over the node's NICs, 400 Gb/s a rank as the class achieves it, after a
  // call, three hops between nodes and the others inside.
  const auto expected = [&](int ranks, int nics) {
    const double moved = double(1 << 30) / ranks * (ranks - 1);
    const double w = moved / (50e9 * nics * roce.efficiency.value);
    const double l = roce.call->value.count() + 3 * roce.latency.value.count() +
                     (ranks - 4) * inside.latency.value.count();
    return moved / (kHost + l + w + roce.pieces->value * std::sqrt(l * w)) / 1e9;  // bus bandwidth
  };
  CHECK(table.scored.runs[0].predicted == Approx(expected(4, 1)));
  CHECK(table.scored.runs[1].predicted == Approx(expected(8, 2)));
}

TEST_CASE("two cards of a bridge talk over it, four over PCIe, and a call waits for its host") {
  TextPool pool;
  const std::string pairs =
      "\"4 x A100, NVLink bridges in pairs, PCIe between pairs\",A100-PCIE-80,";
  const ScoredTable table =
      scored("measured," + pairs + "1,2,all_reduce,536870912,,,,2746,vidur\n" +  //
                 "measured," + pairs + "1,4,all_reduce,536870912,,,,33902,vidur\n" + "measured," +
                 pairs + "1,2,all_reduce,8,,,,7,vidur\n",
             pool);
  REQUIRE(table.scored.runs.size() == 3);
  const LinkClass& pcie = *test::shipped_catalog().find_link("pcie");
  CHECK(table.scored.runs[0].predicted > 150);
  // A ring of four: 6 rounds of a quarter over 31.5 GB/s, a call and 6 hops.
  const double w = 6 * 536870912.0 / 4 / (31.5e9 * pcie.efficiency.value);
  const double l = pcie.call->value.count() + 6 * pcie.latency.value.count();
  const double t = kHost + l + w + pcie.pieces->value * std::sqrt(l * w);
  CHECK(table.scored.runs[1].predicted == Approx(1.5 * 536870912 / t / 1e9).epsilon(1e-6));
  // 20 us of a host, a call and two hops of the bridge, a few bytes.
  const LinkClass& bridge = *test::shipped_catalog().find_link("nvlink-bridge");
  const double few = kHost + bridge.call->value.count() + 2 * bridge.latency.value.count();
  CHECK(table.scored.runs[2].predicted == Approx(8 / few / 1e9).epsilon(1e-2));
  CHECK(table.scored.runs[2].figure == "all-reduce, below 1 MB");
}

TEST_CASE("wrong cells of a collective's row are told with file, line and column, others counted") {
  TextPool pool;
  const ScoredTable table = scored(
      "fit," + kRoce + "1,0,all_reduce,,160,200,,,x\n" +      //
          "fit," + kRoce + "1,8,all_redoce,,160,200,,,x\n" +  //
          "fit," + kRoce +
          "1,8,all_reduce,,160,200,0.5 2,,x\n"  //
          "measured,\"DGX A100 (link between nodes not stated)\",A100-SXM4-80,2,8,all_reduce,"
          "1048576,,,,464,x\n"
          "gues,x,A100-SXM4-80,1,8,all_reduce,1048576,,,,464,x\n",
      pool);
  CHECK(table.scored.runs.empty());
  REQUIRE(table.counts.problems.size() == 4);
  CHECK(format(table.counts.problems[0]) ==
        "p.csv:2:66: error: row skipped: ranks_per_node is not a whole number of 1 to 1024");
  CHECK(table.counts.problems[1].at.line == 3);
  CHECK(table.counts.problems[2].what.find("share_of_peak_by_size holds") != std::string::npos);
  CHECK(table.counts.problems[3].what == "row skipped: kind is fit or measured");
  CHECK(table.scored.skipped.count("the link between its nodes is not stated") == 1);
  CHECK_FALSE(score_collective_profiles("p.csv", "kind\n", pool, test::shipped_catalog()));
}

TEST_CASE("the kind of a table is told by its header") {
  CHECK(table_kind(kHeader) == TableKind::collective_profiles);
  CHECK(table_kind("system,gpus,nodes,collective,message_bytes,time_us,source\n") ==
        TableKind::collectives);
  CHECK(table_kind("id,minutes,epochs_or_samples_to_converge\n") == TableKind::time_to_train);
  CHECK(table_kind("id,usd_per_hour,epochs,hours\n") == TableKind::run_costs);
  CHECK(table_kind("kind,epochs_median,power_limit_watts\n") == TableKind::energy_and_convergence);
  CHECK(table_kind("source,samples_per_second\n") == TableKind::runs);
  CHECK(table_kind("") == TableKind::runs);
}
