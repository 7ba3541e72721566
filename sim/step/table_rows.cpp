#include "sim/step/table_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// Rows that are added up one by one before the integral takes over.
constexpr std::int64_t kOneByOne = 512;
constexpr std::int64_t kOfEachPart = 32;

/// Gauss and Legendre's points of five, on [-1, 1].
struct Point {
  double at, weight;
};
constexpr std::array<Point, 5> kPoints{{{0.0, 0.5688888888888889},
                                        {0.5384693101056831, 0.4786286704993665},
                                        {-0.5384693101056831, 0.4786286704993665},
                                        {0.9061798459386640, 0.2369268850561891},
                                        {-0.9061798459386640, 0.2369268850561891}}};

/// Of f from `begin` to `end`, both above 0: panels of a quarter of a unit of the logarithm, in
/// which powers are nearly straight.
template <class Function>
double integral(double begin, double end, const Function& f) {
  if (end <= begin) return 0;
  constexpr double kPanel = 0.25;  // of ln of the row, a panel's width
  const double first = std::log(begin), last = std::log(end);
  const double panels = std::ceil((last - first) / kPanel), half = (last - first) / panels / 2;
  double sum = 0;
  for (double k = 0; k < panels; ++k)
    for (const Point& p : kPoints) {
      const double x = std::exp(first + (2 * k + 1 + p.at) * half);
      sum += p.weight * half * x * f(x);
    }
  return sum;
}

}  // namespace

RowParts::RowParts(std::int64_t rows, std::int64_t parts, RowPartition rule)
    : rows_(rows), parts_(parts), rule_(rule) {
  RECKON_CHECK(rows >= 1);
  RECKON_CHECK(parts >= 1);
}

std::int64_t RowParts::first_of(std::int64_t part) const {
  return part * (rows_ / parts_) + std::min(part, rows_ % parts_);
}

std::int64_t RowParts::rows_of(std::int64_t part) const {
  RECKON_CHECK(part >= 0);
  RECKON_CHECK(part < parts_);
  return rows_ / parts_ + (part < rows_ % parts_ ? 1 : 0);  // by either rule
}

std::int64_t RowParts::part_of(std::int64_t row) const {
  RECKON_CHECK(row >= 0);
  RECKON_CHECK(row < rows_);
  if (rule_ == RowPartition::mod) return row % parts_;
  const std::int64_t each = rows_ / parts_, longer = rows_ % parts_;
  const std::int64_t in_longer = longer * (each + 1);
  return row < in_longer ? row / (each + 1) : longer + (row - in_longer) / each;
}

std::int64_t RowParts::place_of(std::int64_t row) const {
  const std::int64_t part = part_of(row);
  return rule_ == RowPartition::mod ? row / parts_ : row - first_of(part);
}

std::int64_t RowParts::row_at(std::int64_t part, std::int64_t place) const {
  RECKON_CHECK(place >= 0);
  RECKON_CHECK(place < rows_of(part));
  return rule_ == RowPartition::mod ? place * parts_ + part : first_of(part) + place;
}

DrawnRows::DrawnRows(std::int64_t rows, double exponent) : rows_(rows), exponent_(exponent) {
  RECKON_CHECK(rows >= 1);
  const std::int64_t head = std::min(rows, kOneByOne);
  double total = 0;
  for (std::int64_t r = head; r-- > 0;) total += std::pow(double(r + 1), -exponent);
  total += integral(double(head) + 0.5, double(rows) + 0.5,
                    [&](double x) { return std::pow(x, -exponent); });
  log_sum_ = std::log(total);
}

/// Probability that the row at `row` (counted from 1, whole or not) is among the draws.
double DrawnRows::touched(double row, double log_sum, double draws) const {
  const double p = std::min(1.0, std::exp(-exponent_ * std::log(row) - log_sum));
  return p >= 1 ? (draws > 0 ? 1 : 0) : -std::expm1(draws * std::log1p(-p));
}

/// Rows [begin, end), counted from 0, all behind the first kOneByOne.
double DrawnRows::sum(double begin, double end, double draws) const {
  return integral(begin + 0.5, end + 0.5, [&](double x) { return touched(x, log_sum_, draws); });
}

double DrawnRows::distinct(double draws) const {
  const std::int64_t head = std::min(rows_, kOneByOne);
  double total = sum(double(head), double(rows_), draws);
  for (std::int64_t r = head; r-- > 0;) total += touched(double(r + 1), log_sum_, draws);
  return total;
}

std::vector<double> DrawnRows::distinct_by_part(double draws, const RowParts& parts) const {
  RECKON_CHECK(parts.rows() == rows_);
  const std::int64_t n = parts.parts();
  std::vector<double> by_part(std::size_t(n), 0.0);
  if (n == 1) return {distinct(draws)};
  const std::int64_t head = std::min(rows_, std::max(kOneByOne, kOfEachPart * n));
  for (std::int64_t r = head; r-- > 0;)
    by_part[std::size_t(parts.part_of(r))] += touched(double(r + 1), log_sum_, draws);
  if (head == rows_) return by_part;
  const bool neighbours = parts.part_of(1) == parts.part_of(0);
  std::int64_t begin = head;
  const double rest = neighbours ? 0 : sum(double(head), double(rows_), draws);
  for (std::int64_t p = 0, end = 0; p < n; ++p) {
    end += parts.rows_of(p);
    if (!neighbours) {
      by_part[std::size_t(p)] += rest / double(n);
    } else if (end > begin) {
      by_part[std::size_t(p)] += sum(double(begin), double(end), draws);
      begin = end;
    }
  }
  return by_part;
}

}  // namespace reckon
