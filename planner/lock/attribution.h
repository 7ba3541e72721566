#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "sim/base/words.h"

// Which part of a change is whose: one input after the other is taken from then to now.
namespace reckon::planner {

enum class Cause { edit, prices, evidence, reckon };
constexpr auto words_of(Cause) {
  return std::array{Word<Cause>{"your edit", Cause::edit}, Word<Cause>{"prices", Cause::prices},
                    Word<Cause>{"evidence", Cause::evidence}, Word<Cause>{"reckon", Cause::reckon}};
}
/// The order in which inputs are swapped; what is left over is the last one's.
inline constexpr std::array kCauses{Cause::edit, Cause::prices, Cause::evidence, Cause::reckon};

/// A figure at each swap; infinite where there is no answer (no plan fits).
///
/// `then` is what the lock says. All others are today's reckon: with the question, prices and
/// evidence of then; with today's question; with today's prices too; with all of today.
/// Of any one unit, that of the figure: seconds, USD, a score.
struct Swaps {
  double then = 0, again = 0, edited = 0, repriced = 0, now = 0;
};

/// Shares of now - then, in the order of kCauses. They add up to it; that of reckon is what the
/// same question with the same prices and evidence gives otherwise than it did. nullopt: a figure
/// is infinite.
std::optional<std::array<double, kCauses.size()>> shares_of(const Swaps& swaps);

/// The first cause after which `holds` is false of the figure, when the shares are added to `then`
/// one after the other; nullopt: it holds to the end, or it did not hold then.
template <class Holds>
std::optional<Cause> first_to_break(const Swaps& s, Holds&& holds) {
  if (!holds(s.then)) return std::nullopt;
  const auto shares = shares_of(s);
  // Without numbers: today's reckon stands for that of then.
  const std::array at =
      shares ? std::array{s.then + (*shares)[0], s.then + (*shares)[0] + (*shares)[1],
                          s.then + (*shares)[0] + (*shares)[1] + (*shares)[2], s.now}
             : std::array{s.edited, s.repriced, s.now, s.now};
  if (!shares && !holds(s.again)) return Cause::reckon;
  for (std::size_t k = 0; k < kCauses.size(); ++k)
    if (!holds(at[k])) return kCauses[k];
  return std::nullopt;
}

}  // namespace reckon::planner
