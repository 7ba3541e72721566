#include "planner/fleet/mix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace reckon::planner {
namespace {

/// Of a slot: rounding does not make a job touch the next.
constexpr double kTouch = 1e-9;
constexpr double kMixHour = 3600;
/// A job without a period may take any number of periods: behind a hundred nothing is kept apart.
constexpr int kMostSlots = 100 * kSlots;

class Builder {
 public:
  Builder(const Fleet& fleet, const MixQuestion& question)
      : fleet_(fleet), q_(question), slot_(fleet.period / kSlots) {}

  MixProgram make() {
    add_pools();
    for (std::size_t j = 0; j < fleet_.jobs.size(); ++j) add_job(j);
    add_capacity();
    add_lateness();
    add_money();
    return std::move(program_);
  }

 private:
  const FleetOption& option(const MixProgram::Start& s) const {
    return fleet_.options[fleet_.jobs[s.job].kind][s.option];
  }
  /// The forecast's statistic, or what a replay has said since.
  double held_to(std::size_t job, std::size_t option) const {
    const auto replayed = fleet_.replayed_held_to.find({job, option});
    const double alone = fleet_.options[fleet_.jobs[job].kind][option].held_to;
    return replayed == fleet_.replayed_held_to.end() ? alone : std::max(alone, replayed->second);
  }
  bool has_quota(const FleetPool& pool) const { return q_.quota && !pool.quota.empty(); }

  void add_pools() {
    for (const FleetPool& pool : fleet_.pools) {
      const bool held = pool.held && pool.most_held > 0;
      const double most = held ? pool.most_held : 0;
      program_.held.push_back(
          held ? program_.mip.add_column(
                     {pool.held_usd_hour * fleet_.period / kMixHour, 0, most, true})
               : MixProgram::kNoColumn);
      program_.end.push_back(
          pool.fee_usd_hour > 0
              ? program_.mip.add_column({pool.fee_usd_hour / kMixHour, 0, kNoLimit})
              : MixProgram::kNoColumn);
    }
  }

  /// The submit, and later borders of slots where waiting may help: few enough to be searched.
  std::vector<double> starts_of(std::size_t j, std::size_t k) const {
    const FleetJob& job = fleet_.jobs[j];
    const FleetOption& o = fleet_.options[job.kind][k];
    double latest = q_.period ? fleet_.period - o.held_to : fleet_.period;
    const bool held_to_deadline =
        q_.deadlines && q_.least != MixQuestion::Least::lateness && job.deadline;
    if (held_to_deadline)
      latest = std::min(latest, job.submit + job.deadline->value - held_to(j, k));
    std::vector<double> out;
    if (job.submit <= latest) out.push_back(job.submit);
    const FleetPool& pool = fleet_.pools[o.pool];
    if (!pool.held && !has_quota(pool)) return out;
    const double first = std::floor(job.submit / slot_) + 1, last = std::floor(latest / slot_);
    const double count = last - first + 1;
    for (int k = 0; k < kStarts && k < count; ++k)
      out.push_back(slot_ * (count <= kStarts
                                 ? first + k
                                 : first + std::floor(k * (count - 1) / (kStarts - 1))));
    return out;
  }

  void add_job(std::size_t j) {
    const FleetJob& job = fleet_.jobs[j];
    const auto& options = fleet_.options[job.kind];
    Mip::Row one{1, 1, {}};
    std::map<std::size_t, Mip::Row> ends;  // by pool
    for (std::size_t k = 0; k < options.size(); ++k)
      for (const double at : starts_of(j, k)) {
        const std::size_t column = program_.mip.add_column(
            {options[k].usd + kWaiting * (at - job.submit) / kMixHour, 0, 1, true});
        program_.starts.push_back({j, k, column, at});
        one.entries.push_back({column, 1});
        ends[options[k].pool].entries.push_back({column, at + options[k].seconds});
      }
    program_.mip.add_row(std::move(one));
    for (auto& [pool, row] : ends) {
      if (program_.end[pool] == MixProgram::kNoColumn) continue;
      row.entries.push_back({program_.end[pool], -1});
      row.high = 0;
      program_.mip.add_row(std::move(row));
    }
  }

  void add_capacity() {
    std::map<std::pair<std::size_t, std::int64_t>, Mip::Row> held;  // by pool and slot
    std::map<std::pair<std::string, std::int64_t>, Mip::Row> by_quota;
    for (const MixProgram::Start& s : program_.starts) {
      const FleetOption& o = option(s);
      const FleetPool& pool = fleet_.pools[o.pool];
      const auto first = std::int64_t(std::floor(s.at / slot_ + kTouch));
      const auto last = std::int64_t(
          std::min(std::ceil((s.at + o.seconds) / slot_ - kTouch), double(kMostSlots)));
      for (std::int64_t slot = first; slot < last; ++slot) {
        if (pool.held)
          held[{o.pool, slot}].entries.push_back({s.column, double(o.nodes())});
        else if (has_quota(pool))
          by_quota[{pool.quota, slot}].entries.push_back(
              {s.column, double(o.nodes() * std::max(1, pool.hardware.per_node))});
      }
      // Held nodes count against a quota in every slot that anything else is in, and by themselves.
      if (pool.held && has_quota(pool)) by_quota[{pool.quota, first}];
    }
    for (auto& [key, row] : held) {
      row.high = 0;
      if (program_.held[key.first] != MixProgram::kNoColumn)
        row.entries.push_back({program_.held[key.first], -1});
      program_.mip.add_row(std::move(row));
    }
    if (by_quota.empty()) return;
    const bool stretched = q_.least == MixQuestion::Least::quota;
    const std::size_t more = stretched ? program_.mip.add_column({0, 0, kNoLimit}) : 0;
    if (stretched) least_ = more;
    for (auto& [key, row] : by_quota) {
      row.high = fleet_.quota.at(key.first);
      for (std::size_t p = 0; p < fleet_.pools.size(); ++p)
        if (fleet_.pools[p].quota == key.first && program_.held[p] != MixProgram::kNoColumn)
          row.entries.push_back(
              {program_.held[p], double(std::max(1, fleet_.pools[p].hardware.per_node))});
      if (stretched) row.entries.push_back({more, -1});
      program_.mip.add_row(std::move(row));
    }
  }

  void add_lateness() {
    if (q_.least != MixQuestion::Least::lateness) return;
    least_ = program_.mip.add_column({0, 0, kNoLimit});
    std::map<std::size_t, Mip::Row> rows;
    for (const MixProgram::Start& s : program_.starts) {
      const FleetJob& job = fleet_.jobs[s.job];
      if (!job.deadline) continue;
      const double late = s.at + held_to(s.job, s.option) - job.submit - job.deadline->value;
      rows[s.job].entries.push_back({s.column, late});
    }
    for (auto& [job, row] : rows) {
      row.entries.push_back({*least_, -1});
      row.high = 0;
      program_.mip.add_row(std::move(row));
    }
  }

  void add_money() {
    if (q_.budget && fleet_.budget && q_.least != MixQuestion::Least::cost) {
      Mip::Row row;
      row.high = fleet_.program_budget.value_or(fleet_.budget->value);
      for (std::size_t c = 0; c < program_.mip.columns.size(); ++c)
        if (program_.mip.columns[c].cost != 0)
          row.entries.push_back({c, program_.mip.columns[c].cost});
      program_.mip.add_row(std::move(row));
    }
    if (!least_) return;
    for (Mip::Column& column : program_.mip.columns) column.cost = 0;
    program_.mip.columns[*least_].cost = 1;
  }

  const Fleet& fleet_;
  const MixQuestion& q_;
  const double slot_;
  MixProgram program_;
  std::optional<std::size_t> least_;
};

/// The last end at its least; nullopt: nothing fits.
std::optional<double> least_end(const Fleet& fleet, MixProgram program) {
  for (Mip::Column& column : program.mip.columns) column.cost = 0;
  const std::size_t end = program.mip.add_column({1, 0, kNoLimit});
  std::vector<Mip::Row> rows(fleet.jobs.size());
  for (const MixProgram::Start& s : program.starts)
    rows[s.job].entries.push_back(
        {s.column, s.at + fleet.options[fleet.jobs[s.job].kind][s.option].seconds});
  for (Mip::Row& row : rows) {
    row.entries.push_back({end, -1});
    row.high = 0;
    program.mip.add_row(std::move(row));
  }
  const MipSolution solution = solve(program.mip);
  if (solution.values.empty()) return std::nullopt;
  return solution.values[end];
}

/// What ends later than that is no choice any more.
void forbid_later(const Fleet& fleet, double end, MixProgram& program) {
  constexpr double kSame = 1e-6;
  for (const MixProgram::Start& s : program.starts)
    if (s.at + fleet.options[fleet.jobs[s.job].kind][s.option].seconds > end * (1 + kSame))
      program.mip.columns[s.column].high = 0;
}

FleetChoice choice_of(const Fleet& fleet, const MixProgram& program,
                      const std::vector<double>& values) {
  FleetChoice out;
  out.runs.resize(fleet.jobs.size());
  for (const MixProgram::Start& s : program.starts) {
    if (values[s.column] < 0.5) continue;
    out.runs[s.job] = {s.option, s.at};
    out.usd -= kWaiting * (s.at - fleet.jobs[s.job].submit) / kMixHour;  // nobody pays that
    out.end = std::max(out.end, s.at + fleet.options[fleet.jobs[s.job].kind][s.option].seconds);
  }
  for (const std::size_t column : program.held)
    out.held.push_back(column == MixProgram::kNoColumn ? 0 : int(std::lround(values[column])));
  for (std::size_t c = 0; c < program.mip.columns.size(); ++c)
    out.usd += program.mip.columns[c].cost * values[c];
  return out;
}

}  // namespace

MixProgram pool_mix_program(const Fleet& fleet, const MixQuestion& question) {
  return Builder(fleet, question).make();
}

MixAnswer solve_pool_mix(const Fleet& fleet, const MixQuestion& question) {
  MixProgram program = pool_mix_program(fleet, question);
  MixAnswer out;
  out.columns = program.mip.columns.size();
  out.rows = program.mip.rows.size();
  const bool by_time = fleet.by_time && question.least == MixQuestion::Least::objective;
  double end = 0;
  if (by_time) {
    const auto least = least_end(fleet, program);
    if (least) forbid_later(fleet, end = *least, program);
  }
  const MipSolution solution = solve(program.mip);
  out.status = solution.status;
  out.why = solution.why;
  if (solution.values.empty()) return out;
  out.choice = choice_of(fleet, program, solution.values);
  out.objective = by_time ? end : solution.objective;
  out.bound = by_time ? end : solution.bound;
  return out;
}

}  // namespace reckon::planner
