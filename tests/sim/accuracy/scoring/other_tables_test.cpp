#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "sim/accuracy/scoring/accuracy.h"
#include "support/shipped_catalog.h"

// Tables of other shapes than measurements.
using namespace reckon;

namespace {

// vTrain, ground_truth_single.csv (MIT): its header and first rows.
const std::string kVtrain =
    "\xEF\xBB\xBF# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence "
    "length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)\r\n"
    "2,16,8,1024,16,24,1024,1,1,2,372.160408\r\n"
    "8,32,4,1024,16,24,1024,2,2,2,219.732754\r\n";

}  // namespace

TEST_CASE("vTrain's table is read as runs with their layout, a wrong row is told with its line") {
  TextPool pool;
  std::vector<PublishedRun> runs;
  const auto counts =
      read_vtrain_runs("v.csv", kVtrain + "8,32,four,1024,16,24,1024,2,2,2,219.7\r\n", pool,
                       [&](const PublishedRun& r) { runs.push_back(r); });
  REQUIRE(counts.has_value());
  CHECK(counts->rows == 3);
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].run.accelerators == 8);
  CHECK(runs[1].run.tensor == 2);
  CHECK(runs[1].run.data == 2);
  CHECK(runs[1].run.pipeline == 2);
  CHECK(runs[1].run.recompute == "full");
  CHECK(runs[1].measured.v == Approx(32 / 0.219732754));
  CHECK(std::get<ModelFromTransformer>(model_of_run(runs[0].run)->spec).dimensions.tied_output);
  REQUIRE(counts->problems.size() == 1);
  CHECK(counts->problems[0].at.line == 4);
  CHECK(counts->problems[0].what ==
        "row skipped: micro batch is not a number above zero and at most 1e9");
  CHECK_FALSE(read_vtrain_runs("v.csv", "a,b\n1,2\n", pool, [](const PublishedRun&) {}));
}

TEST_CASE("measured all-reduces are predicted on the machine that their system names") {
  // nccl-tests as printed in aws-samples/awsome-distributed-training (2 x p4de) and for one node of
  // eight A100.
  const std::string text =
      "system,gpus,nodes,collective,message_bytes,time_us,algbw_GBps,busbw_GBps,source,notes\n"
      "\"2x p4de.24xlarge (8x A100-80GB, EFA 4x100 Gb/s)\",16,2,all_reduce,1073741824,26217,40.96,"
      "76.79,aws-samples,\n"
      "1x 8x A100-SXM4-80GB (12 NVLinks),8,1,all_reduce,1073741824,8071,133.0,232.8,p4de log,\n"
      "4x unheard of,4,1,all_reduce,1073741824,8071,133.0,232.8,x,\n"
      "1x 8x A100-SXM4-80GB,8,1,all_gather,1073741824,8071,133.0,232.8,x,\n"
      "1x 8x A100-SXM4-80GB,8,1,all_reduce,,8071,133.0,232.8,x,\n";
  TextPool pool;
  const auto runs = score_collectives("c.csv", text, pool, test::shipped_catalog());
  REQUIRE(runs.has_value());
  CHECK(runs->counts.rows == 5);
  REQUIRE(runs->scored.runs.size() == 2);
  CHECK(runs->scored.runs[0].measured == Approx(76.79).epsilon(0.01));
  CHECK(runs->scored.runs[1].measured == Approx(232.8).epsilon(0.01));
  for (const ScoredRun& r : runs->scored.runs) CHECK(std::abs(r.error()) < 0.15);
  CHECK(runs->scored.skipped.count("hardware that the catalog does not know") == 1);
  CHECK(runs->scored.skipped.count("no all-reduce") == 1);
  CHECK(runs->scored.skipped.count("accelerators, nodes, size or time are not printed") == 1);
}
