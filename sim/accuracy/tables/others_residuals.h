#pragma once
#include <span>
#include <string_view>
#include <vector>

// What other measured rows say of a prediction.
namespace reckon {

/// ln(measured / predicted) of a row, and the network that ran.
struct RowResidual {
  std::string_view id, network;
  double log_ratio = 0;
};

/// By what to multiply the prediction of row `at`: the mean of the log ratios of the other rows of
/// its network and, counted once, the median of those of all other networks. So a network that
/// nobody else ran is moved as far as all were, and each run of the same one counts as much again.
/// Rows of the same id are the row itself. No other row: 1.
double factor_of_others(std::span<const RowResidual> rows, std::size_t at);

}  // namespace reckon
