#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

// A linear program and the one function that solves it: CLP, the simplex solver of COIN-OR [Forrest
// and Lougee-Heimer 2005, "CBC user guide", INFORMS TutORials], which this header does not show.
// Programs with whole numbers: planner/fleet/mip.h.
namespace reckon {

/// max gain . x  where  x >= 0,  low <= A x <= high.
struct LinearProgram {
  static constexpr double kNone = std::numeric_limits<double>::infinity();  // no limit
  struct Entry {
    std::size_t column = 0;
    double value = 0;  // coefficient in A
  };
  struct Row {
    double low = -kNone, high = kNone;  // of the row's A x
    std::vector<Entry> entries;         // of distinct columns
  };
  std::vector<double> gain;  // objective per unit of x, by column
  std::vector<Row> rows;

  std::size_t add_column(double gain_of_it);
  std::size_t add_row(double low, double high);
};

struct LinearSolution {
  double objective = 0;        // gain . x
  std::vector<double> values;  // x, by column
  /// By row: what the objective gains where its limit is one higher. 0: the row does not bind. Of
  /// the several that an optimum may have, one.
  std::vector<double> prices;
};

/// The same program gives the same solution: one thread, no clock. The program has an optimum;
/// another is a programmer's mistake.
LinearSolution solve(const LinearProgram& program);

/// Is there a solver? "": yes, else what is missing.
std::string why_no_linear_solver();

}  // namespace reckon
