#include "sim/accuracy/scoring/fit/fit.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

PublishedRun fit_run(std::string_view source, std::string_view stack, std::string_view model,
                     int batch) {
  PublishedRun r;
  r.source = source;
  r.trust = 'A';
  r.run.accelerator = "V100-SXM2-16";
  r.run.accelerators = r.run.accelerators_per_node = r.run.nodes = 1;
  r.run.model = model;
  r.run.precision = "fp32";
  r.run.strategy = "single";
  r.run.stack = stack;
  r.run.micro_batch = r.run.batch_per_accelerator = batch;
  r.run.global_batch = batch;
  return r;
}

/// Runs of two sources and stacks on a V100 whose efficiencies are known: stack `slow` takes 1.5
/// times as long as `fast`.
std::vector<PublishedRun> made_up_runs(double convolution) {
  Catalog truth = test::shipped_catalog();
  for (Efficiency& e : truth.efficiencies) {
    if (e.accelerator != "Volta" || e.precision != Precision::fp32) continue;
    e.stack = e.stack.empty() ? "" : "-" + e.stack;
    e.convolution.value = convolution;
    e.memory.value = 0.7;
    e.half_size.value = Flops{2e8};
    e.launch.value = Seconds{4e-6};
    e.host.value = Seconds{};
  }
  Predictor predict(truth);
  std::vector<PublishedRun> runs;
  for (const char* model : {"resnet50", "resnet101", "vgg16", "inception_v3"})
    for (const int batch : {16, 64})
      for (const bool slow : {false, true}) {
        PublishedRun r = fit_run(slow ? "b" : "a", slow ? "slow" : "fast", model, batch);
        r.measured = predict(r.run)->rate / (slow ? 1.5 : 1.0);
        r.line = static_cast<int>(runs.size()) + 2;
        runs.push_back(r);
      }
  return runs;
}

RunConfiguration run_in_fp16(RunConfiguration run) {
  run.precision = "fp16";
  run.stack = "eager-x";
  return run;
}

const FittedRow* row_of(const std::vector<FittedRow>& rows, std::string_view stack) {
  for (const FittedRow& r : rows)
    if (r.efficiency.stack == stack) return &r;
  return nullptr;
}

}  // namespace

TEST_CASE("a fit explains the runs that it was given, each stack with its own factor") {
  const auto runs = made_up_runs(0.8);
  const auto rows = EfficiencyFit(runs, test::shipped_catalog()).rows();
  REQUIRE(std::ranges::count_if(rows, [](const FittedRow& r) { return r.runs > 0; }) == 3);
  const FittedRow *any = row_of(rows, ""), *fast = row_of(rows, "fast"),
                  *slow = row_of(rows, "slow");
  REQUIRE((any && fast && slow));
  CHECK(any->runs == 16);
  CHECK(fast->runs == 8);
  CHECK(any->sources == std::vector<std::string>{"a", "b"});
  CHECK(fast->efficiency.convolution.value / slow->efficiency.convolution.value ==
        Approx(1.5).epsilon(0.08));
  const Catalog fitted = with_fitted(test::shipped_catalog(), rows);
  Predictor predict(fitted);
  for (const PublishedRun& r : runs)
    CHECK(predict(r.run)->rate.v == Approx(r.measured.v).epsilon(0.08));
}

TEST_CASE("a fit without a source has not seen it, and its stack falls back to the middle") {
  const auto runs = made_up_runs(0.8);
  const EfficiencyFit fit(runs, test::shipped_catalog());
  const auto rows = fit.rows(HoldOut::source, "b");
  CHECK(row_of(rows, "slow") == nullptr);
  REQUIRE(row_of(rows, ""));
  CHECK(row_of(rows, "")->runs == 8);
  const auto scored = score_cross_validated(runs, test::shipped_catalog());
  REQUIRE(scored.runs.size() == 16);
  for (const ScoredRun& r : scored.runs) {
    CHECK_FALSE(r.stack_known);
    // Each source is predicted from the other alone, whose stack is 1.5 times as fast or slow; the
    // row for any stack keeps part of that to itself.
    const double off = std::log(r.predicted / r.measured);
    CHECK((r.at.source == "b" ? off > 0.1 : off < -0.1));
  }
}

TEST_CASE("folds that nobody wants to see scored are not fitted, and change no other") {
  const auto runs = made_up_runs(0.8);
  const EvidenceKernel kernel;
  const Catalog& catalog = test::shipped_catalog();
  const auto all = score_cross_validated(runs, catalog, HoldOut::source, &kernel);
  const auto some = score_cross_validated(runs, catalog, HoldOut::source, &kernel, {"", "b"});
  REQUIRE(all.runs.size() == 16);
  REQUIRE(some.runs.size() == 8);
  std::size_t next = 0;
  for (const ScoredRun& r : all.runs) {
    if (r.at.source != "b") continue;
    CHECK(some.runs[next].predicted == r.predicted);
    CHECK(some.runs[next].high == r.high);
    ++next;
  }
}

TEST_CASE("a stack's speed and a row's middle are told apart where stacks ran on other rows too") {
  // Rows x and y had stack `fast` (1.5 times `slow`); only `fast` ran on row z, so that its row for
  // any stack is too fast by what `fast` is ahead.
  const auto row = [](const char* accelerator, const char* stack, double speed) {
    FittedRow r;
    r.efficiency.accelerator = accelerator;
    r.efficiency.stack = stack;
    r.efficiency.convolution = r.efficiency.matmul = r.efficiency.attention = r.efficiency.memory =
        Fact<double>{speed};
    r.efficiency.launch = r.efficiency.host = Fact<Seconds>{Seconds{1e-5}};
    r.runs = 10;
    r.standard_errors.fill(0.02);
    r.sources = {"s"};
    return r;
  };
  const double up = std::sqrt(1.5);
  std::vector<FittedRow> rows{row("x", "", 0.4),          row("x", "fast", 0.4 * up),
                              row("x", "slow", 0.4 / up), row("y", "", 0.6),
                              row("y", "fast", 0.6 * up), row("y", "slow", 0.6 / up),
                              row("z", "", 0.5),          row("z", "fast", 0.5)};
  Catalog catalog;
  catalog.stack_classes.push_back({"fused*", "fused"});
  rows.push_back(row("y", "fused-a", 3));  // a class has its own rows: nothing is shared
  const auto stacks = share_stacks(rows, catalog);
  REQUIRE(stacks.size() == 2);  // no family: no two stacks end alike
  const double ratio = stacks[0].stack.speed.value / stacks[1].stack.speed.value;
  CHECK(stacks[0].stack.name == "fast");
  CHECK(ratio > 1.25);  // drawn to one another
  CHECK(ratio < 1.5);
  CHECK(stacks[0].runs == 30);
  CHECK(rows[6].efficiency.memory.value < 0.47);
  CHECK(rows[6].efficiency.memory.value > 0.5 / up);
  CHECK(rows[7].efficiency.memory.value == 0.5);
}

TEST_CASE("stacks of a class are fitted apart, and their row stands for both 16-bit precisions") {
  // The same models in bf16 by a stack of the class and in fp16 by one of none, twice as slow.
  const Catalog& catalog = test::shipped_catalog();
  Predictor predict(catalog);
  std::vector<PublishedRun> runs;
  for (const char* model : {"bert_base", "bert_large", "electra_base"})
    for (const bool of_class : {false, true}) {
      PublishedRun r = fit_run("s", of_class ? "megatron-x" : "eager-x", model, 32);
      r.run.accelerator = "A100-SXM4-80";
      r.run.precision = of_class ? "bf16" : "fp16";
      r.run.sequence_length = 512;
      r.measured = predict(run_in_fp16(r.run))->rate * (of_class ? 1.0 : 0.5);
      runs.push_back(r);
    }
  const auto rows = EfficiencyFit(runs, catalog).rows();
  const auto rate = [&](Precision precision, std::string_view stack) {
    for (const FittedRow& r : rows)
      if (r.efficiency.accelerator == "Ampere" && r.efficiency.precision == precision &&
          r.efficiency.stack == stack)
        return r.efficiency.matmul.value;
    return 0.0;
  };
  CHECK(rate(Precision::bf16, "fused-lm") > 1.2 * rate(Precision::fp16, ""));
  CHECK(rate(Precision::bf16, "fused-lm") == rate(Precision::fp16, "fused-lm"));
  CHECK(rate(Precision::bf16, "") == rate(Precision::bf16, "fused-lm"));  // no other ran there
  CHECK(rate(Precision::fp8, "fused-lm") == 0);                           // which an A100 has not
}

TEST_CASE("fewer than three independent runs are no row") {
  auto runs = made_up_runs(0.8);
  runs.resize(2);
  CHECK(EfficiencyFit(runs, test::shipped_catalog()).rows().empty());
  // The same configuration again is no other run.
  const PublishedRun first = runs.front();
  for (int i = 0; i < 5; ++i) runs.push_back(first);
  CHECK(EfficiencyFit(runs, test::shipped_catalog()).rows().empty());
}

TEST_CASE("GPUs that no run tells of inherit what their neighbours' priors were wrong by") {
  const Catalog shipped = test::shipped_catalog();
  const auto prior = [&](std::string_view name, Precision precision) {
    const Efficiency* any = nullptr;
    for (const Efficiency& e : shipped.efficiencies) {
      if (e.accelerator != name || e.precision != precision) continue;
      if (e.stack == kPriorStack) return &e;
      if (e.stack.empty()) any = &e;
    }
    return any;
  };
  const double known = prior("Volta", Precision::fp32)->convolution.value;
  for (const double factor : {0.6, 1.3}) {
    const auto rows = EfficiencyFit(made_up_runs(known * factor), shipped).rows();
    const auto moved = [&](std::string_view name, Precision precision) {
      for (const FittedRow& r : rows)
        if (r.efficiency.accelerator == name && r.efficiency.precision == precision) {
          CHECK(r.runs == 0);
          CHECK(r.sources == std::vector<std::string>{"a", "b"});
          return r.efficiency.convolution.value / prior(name, precision)->convolution.value;
        }
      return 0.0;
    };
    const double turing = std::log(moved("Turing", Precision::fp32)) / std::log(factor);
    const double hopper = std::log(moved("Hopper", Precision::bf16)) / std::log(factor);
    INFO(factor << ": " << turing << " " << hopper);
    // A part of what one row says; of a row of 2022 less than of one of 2018.
    CHECK(turing > 0.02);
    CHECK(turing < 0.6);
    CHECK(hopper > 0);
    CHECK(hopper < turing);
    CHECK(moved("TPU", Precision::bf16) == 0);
  }
}

TEST_CASE("TPU v2 is never fitted to") {
  std::vector<PublishedRun> runs;
  for (const int chips : {4, 64, 128, 256}) {
    PublishedRun r = fit_run("s", "tf", "resnet50_v1_5", 256);
    r.run.accelerator = "TPU-v2";
    r.run.accelerators = chips;
    r.run.precision = "bf16";
    r.run.strategy = "all_reduce";
    r.measured = SamplesPerSecond{800.0 * chips};
    runs.push_back(r);
  }
  CHECK(EfficiencyFit(runs, test::shipped_catalog()).rows().empty());
}

TEST_CASE("a graph network is never fitted to: where its features lie is printed nowhere") {
  const auto fitted = [](std::string_view third) {  // models; two are too few to fit to
    std::vector<PublishedRun> runs;
    for (const std::string_view model :
         {std::string_view("resnet50"), std::string_view("vgg16"), third}) {
      for (const int batch : {16, 64}) {
        runs.push_back(fit_run("s", "dgl", model, batch));
        runs.back().measured = SamplesPerSecond{350.0};
      }
    }
    return !EfficiencyFit(runs, test::shipped_catalog()).rows().empty();
  };
  CHECK(fitted("inception_v3"));
  CHECK_FALSE(fitted("rgat"));
}

TEST_CASE("without any run the catalog falls back to what is known without measurement") {
  const Catalog bare = with_fitted(test::shipped_catalog(), {});
  const Accelerator& v100 = *bare.find_accelerator("V100-SXM2-16");
  const Efficiency* row = bare.find_efficiency(v100, Precision::fp32, "mxnet");
  REQUIRE(row != nullptr);
  CHECK(row->stack.empty());
  const Efficiency* prior =
      test::shipped_catalog().find_efficiency(v100, Precision::fp32, kPriorStack);
  REQUIRE(prior != nullptr);
  CHECK(prior->stack == kPriorStack);
  CHECK(row->convolution.value == prior->convolution.value);
}
