#include "sim/queue/gavel/linear_program.h"

#include "sim/base/check.h"

#ifdef RECKON_WITH_CBC
#include <coin/Clp_C_Interface.h>
#endif

#include <algorithm>
#include <memory>

namespace reckon {

std::size_t LinearProgram::add_column(double gain_of_it) {
  gain.push_back(gain_of_it);
  return gain.size() - 1;
}

std::size_t LinearProgram::add_row(double low, double high) {
  rows.push_back({low, high, {}});
  return rows.size() - 1;
}

#ifdef RECKON_WITH_CBC
namespace {

/// Into `model`, whose matrix is by columns.
void load_program(Clp_Simplex* model, const LinearProgram& program) {
  const std::size_t columns = program.gain.size();
  std::vector<int> start(columns + 1), row;
  for (const LinearProgram::Row& r : program.rows)
    for (const LinearProgram::Entry& e : r.entries) ++start[e.column + 1];
  for (std::size_t c = 0; c < columns; ++c) start[c + 1] += start[c];
  std::vector<double> value(std::size_t(start.back()));
  row.resize(value.size());
  std::vector<int> next = start;
  for (std::size_t r = 0; r < program.rows.size(); ++r)
    for (const LinearProgram::Entry& e : program.rows[r].entries) {
      const auto at = std::size_t(next[e.column]++);
      row[at] = int(r);
      value[at] = e.value;
    }
  std::vector<double> cost, row_low, row_high;
  for (const double g : program.gain) cost.push_back(-g);  // CLP minimizes
  for (const LinearProgram::Row& r : program.rows) {
    row_low.push_back(r.low);
    row_high.push_back(r.high);
  }
  Clp_loadProblem(model, int(columns), int(program.rows.size()), start.data(), row.data(),
                  value.data(), nullptr, nullptr, cost.data(), row_low.data(), row_high.data());
}

}  // namespace

std::string why_no_linear_solver() { return ""; }

LinearSolution solve(const LinearProgram& program) {
  const std::unique_ptr<Clp_Simplex, decltype(&Clp_deleteModel)> model(Clp_newModel(),
                                                                       Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  load_program(model.get(), program);
  Clp_initialSolve(model.get());
  constexpr int kOptimal = 0;
  RECKON_CHECK(Clp_status(model.get()) == kOptimal);
  LinearSolution out;
  const double* values = Clp_primalColumnSolution(model.get());
  out.values.assign(values, values + program.gain.size());
  const double* prices = Clp_dualRowSolution(model.get());
  for (std::size_t r = 0; r < program.rows.size(); ++r) out.prices.push_back(-prices[r]);
  for (std::size_t c = 0; c < program.gain.size(); ++c)
    out.objective += program.gain[c] * out.values[c];
  return out;
}

#else

std::string why_no_linear_solver() {
  return "reckon was built without the solver CLP (Debian: coinor-libcbc-dev)";
}

LinearSolution solve(const LinearProgram&) {
  RECKON_CHECK(false);
  return {};
}

#endif

}  // namespace reckon
