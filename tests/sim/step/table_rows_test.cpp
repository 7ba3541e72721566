#include "sim/step/table_rows.h"

#include <cmath>
#include <numeric>
#include <set>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/base/random.h"
#include "sim/model/lookup_tables.h"
#include "sim/model/zoo/zoo.h"

using namespace reckon;

namespace {

constexpr Purpose kDraw{"test_table_rows"};

/// Row by row, in long double.
double exact(std::int64_t rows, double exponent, double draws) {
  long double norm = 0, touched = 0;
  for (std::int64_t r = rows; r > 0; --r) norm += std::pow((long double)r, -(long double)exponent);
  for (std::int64_t r = rows; r > 0; --r) {
    const long double p = std::pow((long double)r, -(long double)exponent) / norm;
    touched += -std::expm1((long double)draws * std::log1p(-p));
  }
  return double(touched);
}

/// Different rows of so many draws by the inverse of the law's cumulative sum.
std::set<std::int64_t> drawn(const std::vector<double>& cumulative, int draws, std::uint32_t run) {
  RandomStream stream(7, run, kDraw, 0);
  std::set<std::int64_t> rows;
  for (int k = 0; k < draws; ++k) {
    const double at = stream.uniform() * cumulative.back();
    rows.insert(std::upper_bound(cumulative.begin(), cumulative.end(), at) - cumulative.begin());
  }
  return rows;
}

}  // namespace

TEST_CASE("rows of a table go to parts and back, each once, in balanced parts") {
  CHECK(rc::check([] {
    const std::int64_t rows = *rc::gen::inRange(1, 200), parts = *rc::gen::inRange(1, 30);
    for (const RowPartition rule : {RowPartition::mod, RowPartition::div}) {
      const RowParts split(rows, parts, rule);
      std::vector<std::int64_t> held(std::size_t(parts), 0);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t part = split.part_of(r);
        RC_ASSERT(split.row_at(part, split.place_of(r)) == r);
        // Places follow the order of the rows.
        RC_ASSERT(split.place_of(r) == held[std::size_t(part)]++);
      }
      for (std::int64_t p = 0; p < parts; ++p) {
        RC_ASSERT(held[std::size_t(p)] == split.rows_of(p));
        RC_ASSERT(std::abs(split.rows_of(p) - rows / parts) <= 1);
      }
    }
  }));
}

TEST_CASE("parts are TensorFlow's of mod and div") {
  // tf.nn.embedding_lookup's own example: 13 ids on 5 parts.
  const RowParts mod(13, 5, RowPartition::mod), div(13, 5, RowPartition::div);
  const auto rows_in = [](const RowParts& parts, std::int64_t part) {
    std::vector<std::int64_t> rows;
    for (std::int64_t k = 0; k < parts.rows_of(part); ++k) rows.push_back(parts.row_at(part, k));
    return rows;
  };
  CHECK(rows_in(mod, 0) == std::vector<std::int64_t>{0, 5, 10});
  CHECK(rows_in(mod, 4) == std::vector<std::int64_t>{4, 9});
  CHECK(rows_in(div, 0) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(rows_in(div, 2) == std::vector<std::int64_t>{6, 7, 8});
  CHECK(rows_in(div, 3) == std::vector<std::int64_t>{9, 10});
}

TEST_CASE("the mean number of different rows is the sum over rows, at any skew and size") {
  for (const double s : {0.0, 0.5, 0.99, 1.0, 1.3, 2.5})
    for (const std::int64_t rows : {1, 3, 511, 513, 20'000, 1'000'000})
      for (const double draws : {1.0, 100.0, 65'536.0, 1e7}) {
        INFO(s << ", " << rows << " rows, " << draws << " draws");
        CHECK(DrawnRows(rows, s).distinct(draws) == Approx(exact(rows, s, draws)).epsilon(1e-5));
      }
  // Uniform: N (1 - (1 - 1/N)^m).
  CHECK(DrawnRows(40'000'000, 0).distinct(65'536) ==
        Approx(4e7 * -std::expm1(65'536 * std::log1p(-1 / 4e7))).epsilon(1e-6));
}

TEST_CASE("a Monte Carlo draw touches as many rows, of the table and of each part") {
  constexpr std::int64_t kRows = 5'000;
  constexpr int kDraws = 3'000, kRuns = 60, kParts = 3;
  for (const double s : {0.0, 0.8, 1.2}) {
    std::vector<double> cumulative;
    double sum = 0;
    for (std::int64_t r = 0; r < kRows; ++r)
      cumulative.push_back(sum += std::pow(double(r + 1), -s));
    for (const RowPartition rule : {RowPartition::mod, RowPartition::div}) {
      const RowParts parts(kRows, kParts, rule);
      std::vector<double> mean(kParts, 0.0);
      for (std::uint32_t run = 0; run < kRuns; ++run)
        for (const std::int64_t row : drawn(cumulative, kDraws, run))
          mean[std::size_t(parts.part_of(row))] += 1.0 / kRuns;
      const auto expected = DrawnRows(kRows, s).distinct_by_part(kDraws, parts);
      for (std::size_t p = 0; p < kParts; ++p) {
        INFO(s << ", part " << p << " by " << to_text(rule));
        // The number's variance is below its mean; four standard errors of the mean of the runs.
        CHECK(mean[p] == Approx(expected[p]).margin(4 * std::sqrt(expected[p] / kRuns)));
      }
    }
  }
}

TEST_CASE("parts add up to the table, div puts hot rows together, mod spreads them") {
  for (const std::int64_t rows : {7, 1'000, 3'000'000})
    for (const double s : {0.0, 1.0, 1.3})
      for (const std::int64_t n : {1, 2, 5, 64}) {
        const DrawnRows ids(rows, s);
        for (const RowPartition rule : {RowPartition::mod, RowPartition::div}) {
          const auto parts = ids.distinct_by_part(50'000, RowParts(rows, n, rule));
          INFO(rows << " rows, " << s << ", " << n << " parts by " << to_text(rule));
          CHECK(std::accumulate(parts.begin(), parts.end(), 0.0) ==
                Approx(ids.distinct(50'000)).epsilon(1e-5));
          if (rows > n && s > 0 && rule == RowPartition::div && n > 1 && rows > 1000)
            CHECK(parts.front() > 5 * parts.back());
          if (rows > 1000 && rule == RowPartition::mod)
            CHECK(*std::max_element(parts.begin(), parts.end()) <
                  1.01 * ids.distinct(50'000) / double(n) + 1);
        }
      }
}

TEST_CASE("tables are those that samples look up: DLRM's 26, none that is tied or frozen") {
  const ModelGraph dlrm = zoo_model("dlrm_mlperf").value();
  const auto tables = lookup_tables(dlrm);
  REQUIRE(tables.size() == 26);
  CHECK(tables.front().rows == 45'833'188);
  CHECK(tables.front().width == 128);
  CHECK(tables.front().first == 13);  // behind the 13 numbers of a record
  CHECK(tables.back().first == 13 + 25);
  CHECK(lookup_tables(zoo_model("gpt2_small").value()).empty());  // tied to the output
  CHECK(lookup_tables(zoo_model("resnet50").value()).empty());
}
