#include "sim/accuracy/evidence/evidence.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "support/shipped_evidence.h"

using namespace reckon;

namespace {

/// ResNet-50 in fp16 on eight V100 of one host, at `rate` images a second.
PublishedRun resnet(double rate, std::string_view source, int batch = 128) {
  PublishedRun r;
  r.id = r.source = source;
  r.trust = 'A';
  r.run.accelerator = "V100-SXM2-16";
  r.run.accelerators = r.run.accelerators_per_node = 8;
  r.run.nodes = 1;
  r.run.intra_node_link = "nvlink2";
  r.run.model = "resnet50_v1_5";
  r.run.precision = "fp16";
  r.run.strategy = "all_reduce";
  r.run.batch_per_accelerator = batch;
  r.run.global_batch = 8 * batch;
  r.run.stack = "mxnet-ngc";
  r.measured = SamplesPerSecond{rate};
  return r;
}

EvidenceFeatures question_of(const PublishedRun& run) {
  EvidenceFeatures f = FeatureReader(test::shipped_catalog())(run).value();
  f.source = f.publisher = 0;
  return f;
}

Residual asked(const std::vector<PublishedRun>& runs, const EvidenceFeatures& question,
               double share = 1) {
  return Evidence(runs, test::shipped_catalog(), EvidenceKernel{}).residual(question, share);
}

/// What ships.
const EvidenceFiles& shipped() { return test::shipped_evidence_files(); }

/// One run in `stride` of what ships, evenly.
std::vector<PublishedRun> some_questions(std::size_t stride = 40) {
  std::vector<PublishedRun> some;
  for (std::size_t i = 0; i < shipped().runs().size(); i += stride)
    if (FeatureReader(test::shipped_catalog())(shipped().runs()[i]))
      some.push_back(shipped().runs()[i]);
  return some;
}

}  // namespace

TEST_CASE("without evidence a forecast is the step model's, as wide as the kernel says") {
  const EvidenceKernel kernel;
  const EvidenceFeatures question = question_of(resnet(6000, "a"));
  const Residual r = asked({}, question);
  CHECK(r.mean == 0);
  CHECK(r.deviation ==
        Approx(std::sqrt(device_variance(question, kernel) + kernel.noise * kernel.noise)));
  CHECK(r.half_width == Approx(kernel.interval * r.deviation));
}

TEST_CASE("near evidence moves a forecast most of the way, far evidence hardly") {
  const EvidenceFeatures question = question_of(resnet(1, "a"));
  const Residual slow = asked({resnet(3000, "a"), resnet(3000, "b")}, question);
  const Residual fast = asked({resnet(6000, "a"), resnet(6000, "b")}, question);
  CHECK(fast.mean - slow.mean == Approx(std::log(2)).margin(0.2));
  PublishedRun far = resnet(3000, "a");
  far.run.accelerator = "TPU-v3";
  far.run.model = "ncf";
  EvidenceFeatures features = question_of(resnet(1, "a"));
  CHECK(asked({resnet(3000, "a")}, features).deviation < asked({}, features).deviation);
}

TEST_CASE("copies of a row do not make an interval narrower than its noise, nor count twice") {
  const EvidenceFeatures question = question_of(resnet(1, "a"));
  std::vector<PublishedRun> copies;
  for (int i = 0; i < 50; ++i) copies.push_back(resnet(5000, "a"));
  const Residual once = asked({copies.front()}, question), often = asked(copies, question);
  CHECK(often.deviation == once.deviation);
  CHECK(often.mean == once.mean);
  for (int i = 0; i < 50; ++i) copies.push_back(resnet(5000, "a", 64 + i));
  CHECK(asked(copies, question).deviation > EvidenceKernel{}.noise);
}

TEST_CASE("a run that is measured twice counts with what was measured, not with its order") {
  const EvidenceFeatures question = question_of(resnet(1, "a"));
  const auto a = asked({resnet(5000, "a"), resnet(5200, "a"), resnet(9000, "a")}, question);
  const auto b = asked({resnet(9000, "a"), resnet(5000, "a"), resnet(5200, "a")}, question);
  CHECK(a.mean == b.mean);
}

TEST_CASE("runs on one accelerator say nothing of links") {
  PublishedRun one = resnet(700, "a");
  one.run.accelerators = 1;
  one.run.strategy = "single";
  one.run.global_batch = 128;
  const EvidenceFeatures question = question_of(resnet(1, "a"));
  CHECK(asked({one}, question, 0).deviation == asked({}, question, 0).deviation);
  CHECK(asked({one}, question, 1).deviation < asked({}, question, 1).deviation);
}

TEST_CASE("answers do not depend on the order of questions") {
  std::vector<EvidenceFeatures> questions;
  for (const PublishedRun& r : some_questions()) questions.push_back(question_of(r));
  questions.resize(std::min<std::size_t>(questions.size(), 12));
  const auto kernel = *shipped().kernel();
  const Evidence forwards(shipped().runs(), test::shipped_catalog(), kernel);
  const Evidence backwards(shipped().runs(), test::shipped_catalog(), kernel);
  std::vector<double> first, second;
  for (const auto& q : questions) first.push_back(forwards.residual(q, 0.8).mean);
  for (auto q = questions.rbegin(); q != questions.rend(); ++q)
    second.push_back(backwards.residual(*q, 0.8).mean);
  std::reverse(second.begin(), second.end());
  CHECK(first == second);
}

namespace {

/// Each of `runs` is asked about once as it is and once on hardware that is in no run.
void check_that_unmeasured_hardware_is_wider(const std::vector<PublishedRun>& runs) {
  const Evidence evidence(shipped().runs(), test::shipped_catalog(), *shipped().kernel());
  int compared = 0;
  for (const PublishedRun& r : runs) {
    const EvidenceFeatures measured = question_of(r);
    EvidenceFeatures other = measured;
    other.accelerator = other.architecture = word_id("nobody's");
    other.year = 2035;
    CAPTURE(r.id);
    CHECK(evidence.residual(other, 1).deviation >= evidence.residual(measured, 1).deviation);
    ++compared;
  }
  CHECK(compared > 50);
}

/// Of each of `runs` its stack and links are left out once: at most one interval in twenty is wider
/// where they are said, and none on the mean.
void check_that_saying_more_narrows(const std::vector<PublishedRun>& runs) {
  const Evidence evidence(shipped().runs(), test::shipped_catalog(), *shipped().kernel());
  int wider = 0, compared = 0;
  double change = 0;
  for (const PublishedRun& r : runs) {
    const EvidenceFeatures said = question_of(r);
    EvidenceFeatures unsaid = said;
    unsaid.stack = unsaid.stack_family = unsaid.link = 0;
    const double with = evidence.residual(said, 0.8).deviation;
    const double without = evidence.residual(unsaid, 0.8).deviation;
    wider += with > without * 1.001;
    change += std::log(with / without);
    ++compared;
  }
  CAPTURE(wider, compared, change / compared);
  CHECK(wider <= 0.05 * compared);
  CHECK(change <= 0);
}

}  // namespace

TEST_CASE("hardware that nobody measured has a wider range than the same job where it was") {
  check_that_unmeasured_hardware_is_wider(some_questions());
}

TEST_CASE("hardware that nobody measured has a wider range than any run that ships", "[.long]") {
  check_that_unmeasured_hardware_is_wider(some_questions(1));
}

TEST_CASE("saying a stack and links widens few intervals, and none on the mean") {
  check_that_saying_more_narrows(some_questions());
}

TEST_CASE("saying a stack and links widens few intervals of all that ship", "[.long]") {
  check_that_saying_more_narrows(some_questions(1));
}

TEST_CASE("a run less never makes an interval narrower by more than four hundredths") {
  // Not exactly never: of more runs than a question takes, one more distant takes the place.
  std::mt19937 random(7);
  const EvidenceKernel kernel = *shipped().kernel();
  const auto all = gather_evidence(shipped().runs(), test::shipped_catalog());
  const auto residual_of = [](std::size_t) { return RunResidual{0.1, 0.9}; };
  for (const PublishedRun& r : some_questions()) {
    const EvidenceFeatures question = question_of(r);
    const auto candidates = candidates_for(question, all, kernel);
    const auto with = solve_locally(question, candidates, all, residual_of, kernel);
    if (with.taken.empty()) continue;
    for (const std::size_t k : {std::size_t{0}, random() % with.taken.size()}) {
      auto fewer = candidates;
      std::erase(fewer, with.taken[k].run);
      const auto without = solve_locally(question, fewer, all, residual_of, kernel);
      CAPTURE(r.id, k);
      CHECK(std::sqrt(without.parts.variance(0.9)) >= 0.96 * std::sqrt(with.parts.variance(0.9)));
    }
  }
}

TEST_CASE("features that are read one after the other are those that are read alone") {
  FeatureReader reader(test::shipped_catalog());
  int read = 0;
  for (std::size_t i = 0; i < shipped().runs().size(); i += 3) {
    const PublishedRun& r = shipped().runs()[i];
    const auto after_others = reader(r), alone = FeatureReader(test::shipped_catalog())(r);
    REQUIRE(after_others.has_value() == alone.has_value());
    if (!alone) continue;
    CAPTURE(r.id);
    CHECK(after_others->network == alone->network);
    CHECK(after_others->domain == alone->domain);
    ++read;
  }
  CHECK(read > 1000);
}
