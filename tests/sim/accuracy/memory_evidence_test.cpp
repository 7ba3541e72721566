#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "sim/accuracy/evidence/memory_evidence.h"

using namespace reckon;

namespace {

EvidenceFeatures features(std::string_view stack, std::string_view source) {
  EvidenceFeatures f;
  f.stack = word_id(stack);
  f.network = word_id("dense");
  f.source = word_id(source);
  return f;
}

std::vector<MeasuredPeak> peaks(std::string_view stack, std::string_view source, int runs,
                                double residual) {
  return std::vector<MeasuredPeak>(std::size_t(runs), {features(stack, source), residual});
}

}  // namespace

TEST_CASE("with no measured peak memory is as uncertain as it is without evidence") {
  const auto r = memory_residual(features("megatron", ""), {}, EvidenceKernel{}, 0.13);
  CHECK(r.mean == 0);
  CHECK(r.deviation == 0.13);
}

TEST_CASE("many peaks of one program leave what a run has of its own") {
  // Shares 0.1 + 0.2 + 0.1 + 0.4 are in common, 0.2 a run's own: sqrt(0.2) of 0.13 is 0.058.
  const auto known = peaks("megatron", "a", 50, 0.1);
  const auto r = memory_residual(features("megatron", "a"), known, EvidenceKernel{}, 0.13);
  CHECK(r.mean == Approx(0.1).epsilon(0.03));
  CHECK(r.deviation == Approx(0.0587).epsilon(0.02));
}

TEST_CASE("peaks of another source say less") {
  const auto known = peaks("megatron", "a", 50, 0.1);
  const EvidenceKernel k;
  const auto own = memory_residual(features("megatron", "a"), known, k, 0.13);
  const auto user = memory_residual(features("megatron", ""), known, k, 0.13);
  const auto other = memory_residual(features("jax", ""), known, k, 0.13);
  CHECK(own.deviation < user.deviation);
  CHECK(user.deviation < other.deviation);
  CHECK(other.deviation < 0.13);
  CHECK(user.mean < own.mean);
  CHECK(other.mean < user.mean);
  CHECK(other.mean > 0);
}

TEST_CASE("one more peak never makes memory more uncertain") {
  std::vector<MeasuredPeak> known = peaks("megatron", "a", 1, 0.1);
  double before = 1;
  for (const double residual : {-0.3, 0.3, 0.0, 0.5}) {
    const auto r = memory_residual(features("megatron", ""), known, EvidenceKernel{}, 0.13);
    CHECK(r.deviation <= before);
    before = r.deviation;
    known.push_back({features("other", "b"), residual});
  }
}

TEST_CASE("a source that reads the driver's count is held against all that a process takes") {
  MemoryEstimate m;
  m.activations = Bytes{10e9};
  m.reserve = Bytes{1e9};
  PublishedRun run;
  CHECK(predicted_peak(m, run).v == 10e9);
  run.peak_is_of_device = true;
  CHECK(predicted_peak(m, run).v == 11e9);
}
