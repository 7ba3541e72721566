// Samples a second of one step, for a line of inputs each: what scripts/fit-efficiencies fits
// against measurements, so that no formula of the step model is written twice. One line in, one
// number out:
//   accelerator precision devices model sequence batch accumulation recompute optimizer
//   convolution matmul attention memory half_size_gflop launch_us
// `model` is a name of the zoo or layers,hidden,heads,vocabulary of a GPT; devices > 1 is a TPU
// slice of so many chips.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "sim/base/check.h"
#include "sim/catalog/model_zoo.h"
#include "sim/step/step.h"
#include "support/plans.h"

namespace reckon {
namespace {

ModelGraph model_of(const std::string& name, std::int64_t sequence) {
  if (auto zoo =
          zoo_model(name, zoo_takes_sequence_length(name) && sequence > 0 ? std::optional(sequence)
                                                                          : std::nullopt))
    return *zoo;
  TransformerDimensions d;
  char comma = 0;
  std::istringstream in(name);
  in >> d.layers >> comma >> d.hidden >> comma >> d.heads >> comma >> d.vocabulary;
  RECKON_CHECK(!in.fail());
  d.sequence_length = d.positions = sequence;
  d.bias = false;
  return make_transformer(name, d).value();
}

/// Nothing but the accelerator: input is free.
Plan plan_of(const Catalog& catalog, const std::string& accelerator, Precision precision,
             int devices, ModelGraph model) {
  const Accelerator* found = catalog.find_accelerator(accelerator);
  RECKON_CHECK(found != nullptr);
  const bool tpu = found->kind == AcceleratorKind::tpu;
  Plan plan = test::make_round_plan(
      std::move(model), tpu ? StrategyKind::tpu : StrategyKind::single, 1, devices, 0, precision);
  PlannedPool& pool = plan.pools[0];
  pool.accelerator = *found;
  pool.accelerator->host_bandwidth.value = BytesPerSecond{1e15};
  if (!tpu) return plan;
  pool.peer_link = *catalog.find_link(found->peer_link);
  for (const auto& slice : catalog.slices)
    if (slice.accelerator == found->name && slice.chips == devices) pool.slice = slice;
  if (!pool.slice) pool.slice = TpuSlice{"", found->name, devices, {devices}, false, 1, ""};
  return plan;
}

int answer() {
  const std::filesystem::path layers[] = {default_catalog_directory()};
  const auto catalog = load_catalog(layers);
  if (!catalog) {
    std::cerr << format(catalog.error());
    return 3;
  }
  const auto network = make_fluid_network();
  std::map<std::string, Plan> plans;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string accelerator, precision, model, recompute, optimizer;
    int devices = 0, sequence = 0, batch = 0, accumulation = 0;
    double conv = 0, matmul = 0, attention = 0, memory = 0, half = 0, launch = 0;
    in >> accelerator >> precision >> devices >> model >> sequence >> batch >> accumulation >>
        recompute >> optimizer >> conv >> matmul >> attention >> memory >> half >> launch;
    if (in.fail()) {
      std::cerr << "cannot read: " << line << "\n";
      return 2;
    }
    const auto p = precision_from_text(precision);
    RECKON_CHECK(p.has_value());
    const std::string key =
        accelerator + precision + std::to_string(devices) + model + "@" + std::to_string(sequence);
    auto at = plans.find(key);
    if (at == plans.end())
      at =
          plans.emplace(key, plan_of(*catalog, accelerator, *p, devices, model_of(model, sequence)))
              .first;
    Plan& plan = at->second;
    PlannedWorkload& job = plan.jobs[0];
    job.batch_per_accelerator = batch;
    job.global_batch = std::int64_t{batch} * devices * accumulation;
    job.optimizer = optimizer == "adamw" ? Optimizer::adamw : Optimizer::sgd_momentum;
    job.strategy.recompute = recompute == "full"        ? Recompute::full
                             : recompute == "selective" ? Recompute::selective
                                                        : Recompute::none;
    Efficiency& e = plan.pools[0].efficiency;
    e.convolution = Fact<double>{conv};
    e.matmul = Fact<double>{matmul};
    e.attention = Fact<double>{attention};
    e.memory = Fact<double>{memory};
    e.half_size = Fact<Flops>{Flops{half * 1e9}};
    e.launch = Fact<Seconds>{Seconds{launch * 1e-6}};
    std::printf("%.9g\n", estimate_step(plan, job, *network).samples_per_second.v);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace reckon

int main() { return reckon::answer(); }
