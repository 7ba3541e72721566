#include "sim/measurement/calibration/predicted.h"

#include <algorithm>
#include <cctype>

#include "sim/step/compute.h"
#include "sim/step/network/collectives_cpu.h"

namespace reckon {

bool names_accelerator(std::string_view device, std::string_view accelerator) {
  const std::string_view model = accelerator.substr(0, accelerator.find('-'));
  const std::size_t at = device.find(model);
  if (model.empty() || at == std::string_view::npos) return false;
  const auto part_of_word = [&](std::size_t k) {
    return k < device.size() && std::isalnum(static_cast<unsigned char>(device[k])) != 0;
  };
  return !part_of_word(at + model.size()) && (at == 0 || !part_of_word(at - 1));
}

namespace {

/// By the roofline of the step model (sim/step/compute.h).
Seconds kernel_time(const MeasuredKernel& kernel, const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  const PlannedPool& pool = *computing_pools(plan).front();
  if (!pool.accelerator || kernel.precision != job.precision ||
      !names_accelerator(kernel.device, pool.accelerator->name))
    return {};
  const ElementSizes size = element_sizes(job);
  LayerWork work{.forward = kernel.flops, .backward = {}, .work = kernel.work};
  work.elements_in = kernel.bytes / size.activation;
  return cost_of(work, size, one_core(processor_of(pool, job.precision)), 1).forward;
}

}  // namespace

double predicted(const MeasuredQuantity& of, const Plan& plan, const StepEstimate& step,
                 const NetworkModel& network) {
  const PlannedStrategy& s = plan.only_job().strategy;
  switch (of.what) {
    case Measured::step:
      return step.step.count();
    case Measured::compute:
      return step.compute.count();
    case Measured::update:
      return step.update.count();
    case Measured::exchange:
      return (step.exposed_communication - step.exposed.pipeline).count();
    case Measured::stages:
      return (step.exposed.pipeline + step.bubble).count();
    case Measured::other:
      return step.host.count();
    case Measured::save:
      return checkpoint_save_time(plan, plan.only_job()).count();
    case Measured::start:
      return (plan.job_start.framework_start.value + plan.job_start.compile.value).count();
    case Measured::pull:
      return plan.job_start.image_pull.value.count();
    case Measured::restore:
      return checkpoint_restore_time(plan, plan.only_job()).count();
    case Measured::jitter:
      return plan.framework.step_jitter.value;
    case Measured::reduce:
      return gradient_sum(plan, s)(fabric_of(plan, s, s.workers), of.size,
                                   *cost_of_collectives(network))
          .time.count();
    case Measured::kernel:
      return kernel_time(*of.kernel, plan).count();
    case Measured::decode:
    case Measured::sample:
    case Measured::read:
    case Measured::request:  // these four are taken as they are: take_input()
    case Measured::number:   // no plan is needed for it: CalibrationModel
      break;
  }
  return 0;
}

}  // namespace reckon
