#pragma once
#include "sim/base/quantity.h"
#include "sim/scenario/plan.h"

// What a program can do between a provider's notice and the end of its node: rules for the
// simulation and for the program that obeys them.
//
//   notice --reaction-- told --rest of the step-- training stops --save of the whole gang-- saved
//                                                                 node gone: too late ^ or in time
namespace reckon {

/// How a program takes a provider's notice, as planned.
struct ProgramOnNotice {
  OnNotice policy = OnNotice::save;
  Seconds reaction{};          // from the notice until the program is told
  double writer_spread = 0;    // standard deviation of the logarithm of one writer's time
  bool between_steps = false;  // the step under way is finished first
};

/// All that decides whether a checkpoint of the whole gang is made in time.
struct NoticeRules {
  OnNotice policy = OnNotice::save;
  Seconds reaction{};        // from the notice until the program is told
  Seconds step{};            // training stops between two steps; 0: at once
  Seconds save{};            // of the whole gang, when every writer takes its median time
  int writers = 1;           // nodes that write side by side
  double writer_spread = 0;  // standard deviation of the logarithm of one writer's time
};

/// Where three independent events of a notice fall in their distributions, each in (0, 1).
struct NoticeLuck {
  double step = 0.5;    // of the step, what is left when the program is told
  double writer = 0.5;  // of the slowest writer's time
};

/// Time from the notice to a complete checkpoint:
///   reaction + step u + save exp(s z),   z the standard normal quantile of v^(1 / writers):
/// the slowest of n independent log-normal writers has the distribution F^n. policy none:
/// Seconds::max().
Seconds time_to_saved(const NoticeRules& rules, const NoticeLuck& luck);

/// Probability that time_to_saved() is at most `notice`: the mean of F((notice - reaction - step u)
/// / save)^n over u, by the midpoint rule. 0 with policy none.
double probability_of_save(const NoticeRules& rules, Seconds notice);

}  // namespace reckon
