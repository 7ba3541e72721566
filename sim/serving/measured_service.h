#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// What a server has measured of itself, for the forecast of the next load.
namespace reckon {

/// Batches of about one size, summed.
struct MeasuredBatches {
  double batches = 0, instances = 0;  // counts
  Seconds busy{};

  double size() const { return instances / batches; }  // instances a batch, mean
  Seconds time() const { return busy / batches; }
};

/// Whether a text is what a `reckon-worker serve` says at /metrics.
bool is_serving_metrics(std::string_view text);

/// Its batches, by size. The errors name `name`.
Expected<std::vector<MeasuredBatches>> parse_serving_metrics(const std::string& name,
                                                             std::string_view text);

/// Of a batch of b requests: S(b) = batch + b request, and what a request takes outside the queue.
struct MeasuredOverhead {
  Seconds batch{}, request{};
  double error = 0;  // a share: the largest relative error of a size
};

/// Least squares of the relative errors of S, each size weighted by its batches; neither part is
/// below 0. nullopt: all batches had one size, from which the parts cannot be told apart.
std::optional<MeasuredOverhead> fit_serving_overhead(const std::vector<MeasuredBatches>& measured);

/// What a request took on average between its first byte and its place in the queue, and between
/// its result and the last byte of its answer; nullopt: the page does not say it.
std::optional<Seconds> measured_outside(std::string_view text);

/// What a forward pass took by its size before there were requests, ascending; empty: the page does
/// not say it.
std::vector<std::pair<double, Seconds>> measured_alone(std::string_view text);

/// What /metrics says of a server: batches as a line, or as a table of what each size takes.
struct MeasuredService {
  std::optional<MeasuredOverhead> line;           // nullopt: all batches had one size
  std::vector<std::pair<double, Seconds>> times;  // by size, ascending; empty: the line does
  std::optional<double> slowed;  // factor: what passes took under load over what they took alone
  Seconds outside{};
};
inline constexpr double kLineError = 0.1;  // share of a size's time
/// With `alone` the table: of each size what its pass took alone, times what passes of about that
/// size took longer under load. A load far from the limit shows small batches, and of a line
/// through them a few per cent at the largest are a third of the queue near the limit; how the time
/// grows with the size is measured before, and the load only says how much slower all of it is. The
/// factor of a size that was seen n times is a mean of its own, with weight n, and of that of all
/// batches, with weight kSeen; beyond the sizes that were seen it is that of all.
/// Without `alone`: the line, and where it is off by more than kLineError of some size the table of
/// what each took.
inline constexpr double kSeen = 100;  // batches
MeasuredService fit_serving(const std::vector<MeasuredBatches>& measured,
                            std::optional<Seconds> outside,
                            const std::vector<std::pair<double, Seconds>>& alone = {});

/// The layer of a scenario (--layer) that says so.
std::string serving_layer(const MeasuredService& service, const std::string& from);

}  // namespace reckon
