#include <algorithm>

#include "sim/scenario/resolve/draft.h"

// How a real run trains where the scenario does not say: by the family of the model, as its
// reference recipe does. The forecast does not depend on any of it.
namespace reckon::planning {
namespace {

/// ResNets in an hour [Goyal 2017, arXiv:1706.02677, sections 2.1 and 5.1]: 0.1 for 256 samples,
/// scaled with the batch, momentum 0.9, decay 1e-4, a warm-up; cosine [He 2019, arXiv:1812.01187,
/// section 5.1] in place of its steps, so that any length of training fits.
PlannedOptimizer recipe_of_images(const PlannedWorkload& job) {
  return {.learning_rate = 0.1 * static_cast<double>(job.global_batch) / 256,
          .weight_decay = 1e-4,
          .schedule = LearningRateSchedule::cosine,
          .warmup_steps = job.steps / 20};
}

/// GPT-2 and GPT-3 [Brown 2020, arXiv:2005.14165, table 2.1 and appendix B]: Adam with 0.9 and
/// 0.95, clipped at 1, decay 0.1, cosine to a tenth; 6e-4 is that of 125M parameters, the smallest.
PlannedOptimizer recipe_of_sequences(const PlannedWorkload& job) {
  return {.learning_rate = 6e-4,
          .beta2 = 0.95,
          .weight_decay = 0.1,
          .clip_norm = 1,
          .schedule = LearningRateSchedule::cosine,
          .warmup_steps = std::min<std::int64_t>(2000, job.steps / 10),
          .final_fraction = 0.1};
}

/// DLRM and MLPs: a constant rate, no decay [Naumov 2019, arXiv:1906.00091, section 5].
PlannedOptimizer recipe_of_records() { return {}; }

PlannedOptimizer recipe_of(const PlannedWorkload& job) {
  PlannedOptimizer recipe = job.model.sample_unit() == SampleUnit::sequence
                                ? recipe_of_sequences(job)
                            : job.model.sample_unit() == SampleUnit::image ? recipe_of_images(job)
                                                                           : recipe_of_records();
  const bool sgd = job.optimizer == Optimizer::sgd_momentum;
  // The other optimizer's rate would be wrong by orders of magnitude.
  if (sgd && job.model.sample_unit() == SampleUnit::sequence) recipe.learning_rate = 0.1;
  if (!sgd && job.model.sample_unit() != SampleUnit::sequence) {
    recipe.learning_rate = 1e-3;  // Adam's own [Kingma & Ba 2015, algorithm 1]
    recipe.weight_decay = 0.05;   // [Liu 2021, arXiv:2103.14030, section 4.1]
  }
  return recipe;
}

}  // namespace

void resolve_optimizer_settings(PlannedWorkload& job, const OptimizerSettings& given) {
  PlannedOptimizer& o = job.optimizer_settings;
  o = recipe_of(job);
  const auto take = [](auto& value, const auto& wanted) {
    if (wanted) value = *wanted;
  };
  take(o.learning_rate, given.learning_rate);
  take(o.momentum, given.momentum);
  take(o.beta1, given.beta1);
  take(o.beta2, given.beta2);
  take(o.epsilon, given.epsilon);
  take(o.weight_decay, given.weight_decay);
  take(o.clip_norm, given.clip_norm);
  take(o.schedule, given.schedule);
  take(o.warmup_steps, given.warmup_steps);
  take(o.decay_factor, given.decay_factor);
  take(o.final_fraction, given.final_fraction);
  o.decay_every = given.decay_every.value_or(std::max<std::int64_t>(1, job.steps / 3));
}

}  // namespace reckon::planning
