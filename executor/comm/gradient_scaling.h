#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>

#include "kernels/optimizer/optimizer.h"

// What exchanges do with gradients that were made of a scaled loss (GradientExchange::scaled_by()).
namespace reckon {

struct GradientScaling {
  double scale = 0;  // factor on the gradients; 0: they are what they are, and are not looked at
  std::int64_t skipped = 0;  // steps that this optimizer did not update in

  bool on() const { return scale > 0; }
  /// `squares`: the sum over all ranks' gradients. Squares of finite floats do not leave a double's
  /// range, so one that is not finite is all that can make it so.
  bool overflowed(double squares) const { return on() && !std::isfinite(squares); }
  /// What gradients are multiplied by, clipped to the norm `most`.
  double gradient_scale(double squares, double most) const {
    if (!on()) return clip_scale(squares, most);
    return clip_scale(squares / (scale * scale), most) / scale;
  }
  /// The same of a step; nullopt: a gradient of some rank is not finite, and nothing is to be
  /// updated. `own_squares()`: of the gradients that this rank counts; `of_all` makes those of all
  /// ranks of them, empty: they are. Nobody is asked where nothing is clipped or looked at.
  template <class Squares>
  std::optional<double> scale_of_step(double most, Squares own_squares,
                                      const std::function<double(double)>& of_all) const {
    if (most <= 0 && !on()) return 1;
    double squares = own_squares();
    if (of_all) squares = of_all(squares);
    if (overflowed(squares)) return std::nullopt;
    return gradient_scale(squares, most);
  }
  /// The optimizer's updates before this step.
  std::int64_t updates_of(std::int64_t step) const { return step - skipped; }
};

}  // namespace reckon
