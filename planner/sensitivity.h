#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/levers.h"
#include "planner/search/ranked.h"
#include "planner/search/rivals.h"

// How far a number may move before the choice is another one: each plan lived again with the number
// times a factor, by the same make_forecast and under the same draws, the factor found by
// bisection. A life's bill is a line in a price: of prices two points are lived. An alternative is
// not simulated whole with a factor where its four longest lives prove its mean worse than the
// choice's, one of its lives never ends, or its first 16 are worse by four standard errors of the
// paired difference.
namespace reckon::planner {

struct Flip {
  Lever lever{};
  double factor = 1;                // with it the first plan is no longer the choice
  double holds = 1;                 // the nearest factor that was tried with which it is
  std::optional<RankedPlan> rival;  // what is chosen then; its forecast is that with the factor
  std::string limit;                // that the first plan then misses: "deadline", "budget"; or ""
};

struct LeverFlips {
  Lever lever{};
  std::optional<Flip> up, down;  // nullopt: none of the factors tried does
};

/// Factors that are tried before bisection, and their inverses.
inline constexpr std::array kFactorsTried{2.0, 8.0};

struct Sensitivity {
  int replications = 0;            // of each forecast
  double most = 8;                 // factors from 1 / most to most are looked at
  std::size_t rivals = 0;          // plans that the choice was held against
  std::vector<LeverFlips> levers;  // those that move any of the plans
  // Plans that no threshold was looked for of:
  /// Better with that few replications already, by less than chance may do: a tie.
  std::vector<RankedPlan> ties;
  /// Better beyond chance with all replications: the search had not simulated them.
  std::vector<RankedPlan> better;
};

struct SensitivityOptions {
  int replications = 128;  // at most; the first of the answer's own
  int threads = 0;
};
struct Rivals {
  const std::vector<RankedPlan>& of_answer;
  const std::vector<LeverRival>& of_levers;
};
/// Of the first plan against its alternatives, and against itself bought elsewhere. One
/// that would be better only between two factors that are tried may be missed: tried are 2 and 8
/// times, and what bisection looks at.
Sensitivity sensitivity(const Question& question, const Catalog& catalog,
                        const NetworkModel& network, const RankedPlan& chosen, const Rivals& rivals,
                        const SensitivityOptions& options);

}  // namespace reckon::planner
