#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "executor/comm/parameter_server/server/link.h"

namespace reckon {

/// A worker's side of the embedding tables of its servers: it has the rows of a step, and whole
/// tables only where a checkpoint, or the first values, asks for them.
class TableExchange {
 public:
  using Links = std::vector<std::unique_ptr<ServerLink>>;  // by server
  using Draw = std::function<void(std::size_t table, std::span<float> values)>;

  /// Both outlive it.
  TableExchange(const ServerJob& job, const Links& links);

  bool any() const { return any_; }
  void draw_by(Draw draw) { draw_ = std::move(draw); }
  /// Gives the servers the first values of all tables.
  void initialize();
  /// GradientExchange::need_rows(), whose rows are those of `step`.
  std::vector<std::size_t> need(std::int64_t step, std::size_t table,
                                std::span<const std::int64_t> ids, std::span<float> values);
  /// The gradients of the rows that `step` has named of a table.
  void push(std::int64_t step, std::size_t group, std::span<const float> gradients);
  /// No row is named any more. What push() was given must have been sent.
  void drop();
  /// What pulling rows took since the last call.
  struct Pulled {
    Seconds time{};
    Bytes sent{};  // ids
  };
  Pulled take_pulled() { return std::exchange(pulled_, {}); }

  /// GradientExchange::fetch_tables(), as they are when `step` may begin. `values` (the flat
  /// buffer) are those of the step, too. `buffers`: of the optimizer's state; 0: left out.
  std::vector<WholeTable> fetch(std::int64_t step, std::span<float> values, std::size_t buffers);
  void restore(std::span<const WholeTable> tables);

 private:
  struct StepRows {
    std::unordered_map<RowId, std::size_t> places;  // of the named ones, in the room for the table
    std::vector<RowId> ids;                         // those
    std::vector<std::vector<std::byte>> pushed;     // by server: what is on its way
  };
  std::size_t group_of(std::size_t table) const;
  void pull(std::int64_t step, std::size_t group, std::span<const RowId> ids,
            std::span<float> values);
  void fetch_state(std::size_t group, WholeTable& table);
  void wait_for_all();

  const ServerJob& job_;
  const Links& links_;
  bool any_ = false;
  Draw draw_;
  std::vector<StepRows> rows_;  // by group
  Pulled pulled_;
};

}  // namespace reckon
