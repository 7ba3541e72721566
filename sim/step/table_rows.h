#pragma once
#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/scenario/spec/words.h"

// Which rows of an embedding table are together on a parameter server, and how many of them a batch
// touches: the rules of the forecast (servers/placement.h) and of the run
// (executor/comm/parameter_server/server/keys.h).
namespace reckon {

/// What names a row on the wire, as TensorFlow and PyTorch index.
inline constexpr Bytes kRowId{8};

/// The rows of a table in parts. mod: row r is in part r mod n. div: neighbours are together, and
/// the first rows mod n parts have one more [TensorFlow, tf.nn.embedding_lookup].
class RowParts {
 public:
  /// rows >= 1, parts >= 1; parts beyond the rows are empty.
  RowParts(std::int64_t rows, std::int64_t parts, RowPartition rule);

  std::int64_t rows() const { return rows_; }
  std::int64_t parts() const { return parts_; }
  std::int64_t rows_of(std::int64_t part) const;
  std::int64_t part_of(std::int64_t row) const;
  /// Of a row within its part, counted from 0 in the order of the rows.
  std::int64_t place_of(std::int64_t row) const;
  std::int64_t row_at(std::int64_t part, std::int64_t place) const;

 private:
  std::int64_t first_of(std::int64_t part) const;  // div

  std::int64_t rows_, parts_;
  RowPartition rule_;
};

/// Ids of a table, drawn one by one, each row r with probability p(r) = (r + 1)^-s / H, H the sum
/// over all rows [Zipf's law; Cooper et al. 2010, "Benchmarking cloud serving systems with YCSB",
/// SoCC '10, Sec. 4.1]. s = 0: all alike.
class DrawnRows {
 public:
  DrawnRows(std::int64_t rows, double exponent);

  /// How many different rows so many draws touch in the mean,
  ///   sum over rows of 1 - (1 - p(r))^draws
  /// [Flajolet, Gardy and Thimonier 1992, "Birthday paradox, coupon collectors, caching algorithms
  /// and self-organizing search", Discrete Applied Mathematics 39, Sec. 5], and so many of each
  /// part. The first rows are added up one by one; the smooth rest is the integral between the
  /// middles of its rows (relative error below 1e-5). Of `mod` each part has as much of that rest.
  double distinct(double draws) const;  // a count of rows; so is `draws`, of ids
  std::vector<double> distinct_by_part(double draws, const RowParts& parts) const;

 private:
  double touched(double row, double log_sum, double draws) const;  // probability
  double sum(double begin, double end, double draws) const;        // a count of rows

  std::int64_t rows_;
  double exponent_;
  double log_sum_ = 0;  // ln H
};

}  // namespace reckon
