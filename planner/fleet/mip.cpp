#include "planner/fleet/mip.h"

#include "sim/base/check.h"

#ifdef RECKON_WITH_CBC
#include <coin/Cbc_C_Interface.h>
#endif

#include <algorithm>
#include <array>
#include <memory>

namespace reckon::planner {

std::size_t Mip::add_column(const Column& column) {
  columns.push_back(column);
  return columns.size() - 1;
}

std::size_t Mip::add_row(Row row) {
  for (const Entry& entry : row.entries) RECKON_CHECK(entry.column < columns.size());
  rows.push_back(std::move(row));
  return rows.size() - 1;
}

#ifdef RECKON_WITH_CBC
namespace {

/// The matrix by columns, as CBC reads it.
struct ByColumns {
  std::vector<int> start, row;
  std::vector<double> value;
};

ByColumns by_columns(const Mip& program) {
  std::vector<int> count(program.columns.size() + 1);
  for (const Mip::Row& row : program.rows)
    for (const Mip::Entry& entry : row.entries) ++count[entry.column + 1];
  ByColumns out;
  out.start.resize(count.size());
  for (std::size_t c = 1; c < count.size(); ++c) out.start[c] = out.start[c - 1] + count[c];
  std::vector<int> next = out.start;
  out.row.resize(std::size_t(out.start.back()));
  out.value.resize(out.row.size());
  for (std::size_t r = 0; r < program.rows.size(); ++r)
    for (const Mip::Entry& entry : program.rows[r].entries) {
      const auto at = std::size_t(next[entry.column]++);
      out.row[at] = int(r);
      out.value[at] = entry.value;
    }
  return out;
}

void load(Cbc_Model* model, const Mip& program) {
  const ByColumns matrix = by_columns(program);
  std::vector<double> low, high, cost, row_low, row_high;
  for (const Mip::Column& c : program.columns) {
    low.push_back(c.low);
    high.push_back(c.high);
    cost.push_back(c.cost);
  }
  for (const Mip::Row& r : program.rows) {
    row_low.push_back(r.low);
    row_high.push_back(r.high);
  }
  Cbc_loadProblem(model, int(cost.size()), int(row_low.size()), matrix.start.data(),
                  matrix.row.data(), matrix.value.data(), low.data(), high.data(), cost.data(),
                  row_low.data(), row_high.data());
  for (std::size_t c = 0; c < program.columns.size(); ++c)
    if (program.columns[c].whole) Cbc_setInteger(model, int(c));
}

}  // namespace

std::string why_no_solver() { return ""; }

MipSolution solve(const Mip& program, int nodes) {
  MipSolution out;
  const std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> model(Cbc_newModel(),
                                                                     Cbc_deleteModel);
  Cbc_setLogLevel(model.get(), 0);
  load(model.get(), program);
  Cbc_setMaximumNodes(model.get(), nodes);
  Cbc_setAllowableGap(model.get(), 0);
  Cbc_setAllowableFractionGap(model.get(), 0);
  Cbc_solve(model.get());
  const double* values = Cbc_getColSolution(model.get());
  const bool whole = std::ranges::any_of(program.columns, &Mip::Column::whole);
  if (Cbc_isProvenOptimal(model.get()))
    out.status = MipSolution::Status::optimal;
  else if (Cbc_isProvenInfeasible(model.get()))
    out.status = MipSolution::Status::infeasible;
  else if (Cbc_isContinuousUnbounded(model.get()))
    out.status = MipSolution::Status::unbounded;
  else
    out.status = MipSolution::Status::stopped;
  const bool solved = out.status == MipSolution::Status::optimal;
  // Stopped before a first solution the objective is CBC's idea of infinity.
  constexpr double kNothing = 1e50;
  out.objective = Cbc_getObjValue(model.get());
  out.bound = whole ? Cbc_getBestPossibleObjValue(model.get()) : out.objective;
  if (solved) out.bound = out.objective;
  if (values != nullptr &&
      (solved || (out.status == MipSolution::Status::stopped && out.objective < kNothing)))
    out.values.assign(values, values + program.columns.size());
  return out;
}

#else

std::string why_no_solver() {
  return "reckon was built without the solver CBC (Debian: coinor-libcbc-dev)";
}

MipSolution solve(const Mip&, int) {
  MipSolution out;
  out.why = why_no_solver();
  return out;
}

#endif

}  // namespace reckon::planner
