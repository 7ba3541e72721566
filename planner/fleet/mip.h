#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

// A mixed-integer linear program and the one function that solves it: CBC, the branch-and-cut
// solver of COIN-OR [Forrest and Lougee-Heimer 2005, "CBC user guide", INFORMS TutORials], which
// this header does not show.
namespace reckon::planner {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();  // of a row or a column

/// min cost . x  where  low <= x <= high, row_low <= A x <= row_high, some of x are whole.
class Mip {
 public:
  struct Entry {
    std::size_t column = 0;
    double value = 0;  // coefficient in A
  };
  struct Column {
    double cost = 0, low = 0, high = 0;  // objective per unit of the column; its bounds
    bool whole = false;
  };
  struct Row {
    double low = -kNoLimit, high = kNoLimit;  // of the row's A x
    std::vector<Entry> entries;               // of distinct columns
  };

  /// Both return the index.
  std::size_t add_column(const Column& column);
  std::size_t add_row(Row row);

  std::vector<Column> columns;
  std::vector<Row> rows;
};

struct MipSolution {
  enum class Status {
    optimal,
    infeasible,
    unbounded,
    stopped,     // the best that was found within the nodes; `bound` says how far it may be off
    unavailable  // there is no solver here; `why` says it
  } status = Status::unavailable;
  double objective = 0;        // cost . x
  double bound = 0;            // no solution's objective is below
  std::vector<double> values;  // x, by column
  std::string why;
};

/// The same program gives the same solution: one thread, no clock. `nodes`: of branch and bound.
MipSolution solve(const Mip& program, int nodes = 20000);

/// Is there a solver? "": yes, else what is missing.
std::string why_no_solver();

}  // namespace reckon::planner
