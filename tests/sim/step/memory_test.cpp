#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/model/names.h"
#include "sim/step/step.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

TEST_CASE("mixed-precision Adam keeps 16 bytes a parameter") {
  // ZeRO [Rajbhandari et al. 2020, Sec. 3.1]: 2 weights + 2 gradients + 12 optimizer; GPT-2's 1.5 B
  // need 24 GB.
  Plan plan = make_round_plan(zoo_model("gpt2_small").value(), StrategyKind::single, 1, 1, 0,
                              Precision::fp16);
  plan.jobs[0].optimizer = Optimizer::adamw;
  const auto m = estimate_memory(plan, plan.jobs[0]);
  const double parameters = 124439808;
  CHECK(m.parameters.v == 2 * parameters);
  CHECK(m.gradients.v == 2 * parameters);
  CHECK(m.optimizer.v == 12 * parameters);
}

TEST_CASE("fp32 with momentum keeps 12 bytes a parameter, all in fp32") {
  const Plan plan = make_round_plan(zoo_model("resnet50").value(), StrategyKind::single);
  const auto m = estimate_memory(plan, plan.jobs[0]);
  CHECK((m.parameters + m.gradients + m.optimizer).v == 12.0 * 25557032);
}

TEST_CASE("parameter servers keep the optimizer's state, workers do not") {
  const Plan plan =
      make_round_plan(zoo_model("resnet50").value(), StrategyKind::parameter_server, 2, 1, 1);
  CHECK(estimate_memory(plan, plan.jobs[0]).optimizer.v == 0);
}

TEST_CASE("every core of a device holds a copy of the state") {
  Plan plan = make_round_plan(zoo_model("resnet50").value(), StrategyKind::single);
  plan.pools[0].accelerator->cores_per_device = 2;
  CHECK(estimate_memory(plan, plan.jobs[0]).parameters.v == 2 * 4.0 * 25557032);
}

TEST_CASE("a cut strategy whose degrees are all 1 holds what a data-parallel one does") {
  for (const char* name : {"resnet50", "vgg16", "gpt2_small", "lstm_lm_wikitext2"})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      INFO(name);
      Plan plan = make_round_plan(zoo_model(name).value(), StrategyKind::multi_worker_mirrored, 2);
      PlannedWorkload& job = plan.jobs[0];
      plan.pools[0].accelerator->cores_per_device = 2;
      job.strategy.layout.recompute = recompute;
      const MemoryEstimate whole = estimate_memory(plan, job);
      job.strategy.kind = StrategyKind::model_parallel;
      const MemoryEstimate cut = estimate_memory(plan, job);
      CHECK(cut.required() == whole.required());
      CHECK(cut.activations == whole.activations);
    }
}

TEST_CASE("full recomputation holds no more than none, whatever the network") {
  for (const std::string& name : zoo_names())
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      INFO(name << " in " << to_text(precision));
      Plan plan =
          make_round_plan(zoo_model(name).value(), StrategyKind::single, 1, 1, 0, precision);
      PlannedWorkload& job = plan.jobs[0];
      const Bytes none = estimate_memory(plan, job).activations;
      job.strategy.layout.recompute = Recompute::full;
      CHECK(estimate_memory(plan, job).activations <= none);
    }
}

TEST_CASE("memory grows with the batch and shrinks with recomputation") {
  CHECK(rc::check([] {
    const auto name =
        *rc::gen::element<std::string>("resnet50", "vgg16", "gpt2_small", "bert_large");
    Plan plan = make_round_plan(zoo_model(name).value(), StrategyKind::single);
    PlannedWorkload& job = plan.jobs[0];
    job.strategy.layout.micro_batch = *rc::gen::inRange(1, 256);
    const Bytes none = estimate_memory(plan, job).required();
    job.strategy.layout.recompute = Recompute::selective;
    const Bytes selective = estimate_memory(plan, job).required();
    job.strategy.layout.recompute = Recompute::full;
    const Bytes full = estimate_memory(plan, job).required();
    RC_ASSERT(selective <= none);
    RC_ASSERT(full <= none);
    job.strategy.layout.recompute = Recompute::none;
    ++job.strategy.layout.micro_batch;
    RC_ASSERT(estimate_memory(plan, job).required() > none);
  }));
}

TEST_CASE("a plan that does not fit is told by how much and what would make it fit") {
  Plan plan = make_round_plan(zoo_model("resnet50").value(), StrategyKind::single);
  PlannedWorkload& job = plan.jobs[0];
  job.strategy.layout.micro_batch = 4096;
  Catalog catalog;
  catalog.accelerators.push_back(round_accelerator());
  Accelerator large = round_accelerator();
  large.name = "Large-2000";
  large.memory = Fact<Bytes>{2000.0_GiB};
  catalog.accelerators.push_back(large);
  Places places;
  places.file = "a.yaml";
  places.set("workload", {"a.yaml", 2, 1});
  places.set("workload.batch_per_accelerator", {"a.yaml", 7, 3});
  const auto error = check_memory(plan, job, catalog, places);
  REQUIRE(error);
  CHECK(error->at == SourcePlace{"a.yaml", 7, 3});
  CHECK(error->what.find("resnet50 at batch 4096 needs ") == 0);
  CHECK(error->hint.find("activations ") != std::string::npos);
  CHECK(error->hint.find("Large-2000") != std::string::npos);
  CHECK(error->hint.find("Round-16") == std::string::npos);
  // The batch that it names fits, one more does not.
  const std::string mark = "the largest batch_per_accelerator that fits is ";
  const auto at = error->hint.find(mark);
  REQUIRE(at != std::string::npos);
  job.strategy.layout.micro_batch = std::stoi(error->hint.substr(at + mark.size()));
  CHECK_FALSE(check_memory(plan, job, catalog, places));
  ++job.strategy.layout.micro_batch;
  CHECK(check_memory(plan, job, catalog, places));
}

TEST_CASE("a plan that fits where the framework takes the least it may is told so") {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::single);
  plan.framework.reserve = Fact<Bytes>{0.75_GiB, 0.375_GiB, 1.5_GiB, SourceId::user};
  PlannedPool& pool = plan.pools[0];
  pool.accelerator->memory.value = estimate_memory(plan, plan.jobs[0]).required() - 0.25_GiB;
  const auto close = check_memory(plan, plan.jobs[0], Catalog{}, Places{});
  REQUIRE(close);
  CHECK(close->hint.find("it would fit where the framework takes 384 MiB rather than 768 MiB "
                         "(assumed: 384 MiB .. 1.50 GiB)") != std::string::npos);
  // Half a GiB short is more than 0.75 - 0.375.
  pool.accelerator->memory.value = pool.accelerator->memory.value - 0.25_GiB;
  const auto far = check_memory(plan, plan.jobs[0], Catalog{}, Places{});
  REQUIRE(far);
  CHECK(far->hint.find("it would fit") == std::string::npos);
}

TEST_CASE("a model that does not fit with any batch is pointed at, not the batch") {
  Plan plan = make_round_plan(zoo_model("llama2_7b").value(), StrategyKind::single, 1, 1, 0,
                              Precision::bf16);
  plan.jobs[0].optimizer = Optimizer::adamw;
  Places places;
  places.set("workload.model", {"a.yaml", 3, 10});
  const auto error = check_memory(plan, plan.jobs[0], Catalog{}, places);
  REQUIRE(error);
  CHECK(error->at.line == 3);
  CHECK(error->hint.find("not even a batch of 1 fits") != std::string::npos);
  CHECK(error->hint.find("no accelerator of the catalog") != std::string::npos);
}

namespace {
/// 10 GiB of tensors and 1 GiB of reserve.
MemoryEstimate ten_and_one(Bytes available, double deviation) {
  MemoryEstimate m;
  m.activations = 10.0_GiB;
  m.reserve = 1.0_GiB;
  m.available = available;
  m.deviation = deviation;
  return m;
}
}  // namespace

TEST_CASE("P(out of memory) is that of a log-normal peak of tensors beside the reserve") {
  // Phi(ln(10 / (11 - 1)) / 0.1) = Phi(0).
  CHECK(ten_and_one(11.0_GiB, 0.1).out_of_memory() == Approx(0.5));
  // 10 e^(2.3263 x 0.1) = 12.619: the 99th percentile.
  CHECK(ten_and_one(13.619_GiB, 0.1).out_of_memory() == Approx(0.01).epsilon(0.002));
  // 10 e^(-1.6449 x 0.1) = 8.483: the 5th.
  CHECK(ten_and_one(9.483_GiB, 0.1).out_of_memory() == Approx(0.95).epsilon(0.001));
  CHECK(ten_and_one(1.0_GiB, 0.1).out_of_memory() == 1);
  // 12 above 10 is ln 1.2 = 0.182, of sqrt(0.1^2 + (0.5 / 12)^2) = 0.1083: 1.683.
  MemoryEstimate m = ten_and_one(13.0_GiB, 0.1);
  m.reserve_deviation = 0.5_GiB;
  CHECK(m.out_of_memory() == Approx(0.0462).epsilon(0.01));
}

TEST_CASE("a prediction that is exact runs out of memory or does not") {
  CHECK(ten_and_one(11.0_GiB, 0).out_of_memory() == 0);
  CHECK(ten_and_one(11.0_GiB - 1.0_MiB, 0).out_of_memory() == 1);
}

TEST_CASE("what comparable runs took more counts as tensors") {
  MemoryEstimate m = ten_and_one(13.0_GiB, 0.1);
  m.evidence = 2.0_GiB;
  CHECK(m.required().v == Approx((13.0_GiB).v));
  CHECK(m.out_of_memory() == Approx(0.5));
  CHECK(m.margin().v == Approx(0).margin(1));
}

TEST_CASE("less memory or a wider uncertainty of what fits is never a smaller risk") {
  CHECK(rc::check([] {
    const double there = *rc::gen::inRange(1200, 3000) / 100.0;
    const double deviation = *rc::gen::inRange(1, 50) / 100.0;
    const auto risk = [](double gib, double s) {
      return ten_and_one(Bytes{gib * (1.0_GiB).v}, s).out_of_memory();
    };
    RC_ASSERT(risk(there, deviation) <= risk(there - 0.5, deviation));
    RC_ASSERT(risk(there, deviation) <= risk(there, deviation + 0.01));
  }));
}

TEST_CASE("probabilities near 0 and 1 are said as bounds") {
  CHECK(probability_text(0.0001) == "< 0.1 %");
  CHECK(probability_text(0.003) == "0.3 %");
  CHECK(probability_text(0.42) == "42 %");
  CHECK(probability_text(0.9999) == "> 99.9 %");
}

TEST_CASE("attention without a fused kernel keeps a score of each query and key") {
  Plan plan = make_round_plan(zoo_model("gpt2_small", 512).value(), StrategyKind::single, 1, 1, 0,
                              Precision::fp16);
  PlannedWorkload& job = plan.jobs[0];
  job.strategy.layout.micro_batch = 2;
  const auto with = [&](bool keeps, Recompute mode) {
    plan.framework.keeps_scores = keeps;
    job.strategy.layout.recompute = mode;
    return estimate_memory(plan, job).activations;
  };
  // 12 layers of 12 heads, 2 samples, 512 x 512 scores of 2 bytes; one layer's where attention is
  // computed again.
  const double layer = 2 * 12 * 512.0 * 512 * 2;
  CHECK(with(true, Recompute::none).v - with(false, Recompute::none).v == Approx(12 * layer));
  CHECK(with(true, Recompute::selective).v - with(false, Recompute::selective).v == Approx(layer));
}

TEST_CASE("what a driver keeps is no program's") {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::single);
  plan.pools[0].accelerator->usable_memory = Fact<Bytes>{15.5_GiB};
  CHECK(estimate_memory(plan, plan.jobs[0]).available == 15.5_GiB);
}
