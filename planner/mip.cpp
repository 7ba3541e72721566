#include "planner/mip.h"

#include "sim/base/check.h"

#ifdef RECKON_WITH_CBC
#include <dlfcn.h>

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

/// The functions of CBC's C interface that are called, found in its library.
class Cbc {
 public:
  static const Cbc& loaded() {
    static const Cbc kCbc;
    return kCbc;
  }
  std::string missing;

  decltype(&Cbc_newModel) make = nullptr;
  decltype(&Cbc_deleteModel) remove = nullptr;
  decltype(&Cbc_loadProblem) load = nullptr;
  decltype(&Cbc_setInteger) set_integer = nullptr;
  decltype(&Cbc_setLogLevel) set_log_level = nullptr;
  decltype(&Cbc_setMaximumNodes) set_maximum_nodes = nullptr;
  decltype(&Cbc_setAllowableGap) set_allowable_gap = nullptr;
  decltype(&Cbc_setAllowableFractionGap) set_allowable_fraction_gap = nullptr;
  decltype(&Cbc_solve) solve = nullptr;
  decltype(&Cbc_isProvenOptimal) is_optimal = nullptr;
  decltype(&Cbc_isProvenInfeasible) is_infeasible = nullptr;
  decltype(&Cbc_isContinuousUnbounded) is_unbounded = nullptr;
  decltype(&Cbc_getObjValue) objective = nullptr;
  decltype(&Cbc_getBestPossibleObjValue) bound = nullptr;
  decltype(&Cbc_getColSolution) values = nullptr;

 private:
  Cbc() {
    library_ = dlopen(RECKON_CBC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      missing = std::string("the solver CBC cannot be loaded: ") + dlerror();
      return;
    }
    find(make, "Cbc_newModel");
    find(remove, "Cbc_deleteModel");
    find(load, "Cbc_loadProblem");
    find(set_integer, "Cbc_setInteger");
    find(set_log_level, "Cbc_setLogLevel");
    find(set_maximum_nodes, "Cbc_setMaximumNodes");
    find(set_allowable_gap, "Cbc_setAllowableGap");
    find(set_allowable_fraction_gap, "Cbc_setAllowableFractionGap");
    find(solve, "Cbc_solve");
    find(is_optimal, "Cbc_isProvenOptimal");
    find(is_infeasible, "Cbc_isProvenInfeasible");
    find(is_unbounded, "Cbc_isContinuousUnbounded");
    find(objective, "Cbc_getObjValue");
    find(bound, "Cbc_getBestPossibleObjValue");
    find(values, "Cbc_getColSolution");
  }
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) missing = std::string("the library of CBC has no ") + name;
  }
  void* library_ = nullptr;
};

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

void load(const Cbc& cbc, Cbc_Model* model, const Mip& program) {
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
  cbc.load(model, int(cost.size()), int(row_low.size()), matrix.start.data(), matrix.row.data(),
           matrix.value.data(), low.data(), high.data(), cost.data(), row_low.data(),
           row_high.data());
  for (std::size_t c = 0; c < program.columns.size(); ++c)
    if (program.columns[c].whole) cbc.set_integer(model, int(c));
}

}  // namespace

std::string why_no_solver() { return Cbc::loaded().missing; }

MipSolution solve(const Mip& program, int nodes) {
  MipSolution out;
  const Cbc& cbc = Cbc::loaded();
  out.why = cbc.missing;
  if (!out.why.empty()) return out;
  const std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> model(cbc.make(), cbc.remove);
  cbc.set_log_level(model.get(), 0);
  load(cbc, model.get(), program);
  cbc.set_maximum_nodes(model.get(), nodes);
  cbc.set_allowable_gap(model.get(), 0);
  cbc.set_allowable_fraction_gap(model.get(), 0);
  cbc.solve(model.get());
  const double* values = cbc.values(model.get());
  const bool whole = std::ranges::any_of(program.columns, &Mip::Column::whole);
  if (cbc.is_optimal(model.get()))
    out.status = MipSolution::Status::optimal;
  else if (cbc.is_infeasible(model.get()))
    out.status = MipSolution::Status::infeasible;
  else if (cbc.is_unbounded(model.get()))
    out.status = MipSolution::Status::unbounded;
  else
    out.status = MipSolution::Status::stopped;
  const bool solved = out.status == MipSolution::Status::optimal;
  // Stopped before a first solution the objective is CBC's idea of infinity.
  constexpr double kNothing = 1e50;
  out.objective = cbc.objective(model.get());
  out.bound = whole ? cbc.bound(model.get()) : out.objective;
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
