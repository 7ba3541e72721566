#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "sim/base/quantity.h"

// What a strategy does between a rank's backward pass and its next forward pass. The training loop
// knows no other difference between strategies.
namespace reckon {

/// The state of all trainable parameters of one rank, flat: one buffer each, in the order of the
/// graph's layers. A layer's parameters are the range [first, first + count) of them.
struct ParameterView {
  std::span<float> values;
  /// Of the mean loss over the global batch, this rank's part of it: the sum over this rank's
  /// samples divided by the samples of *all* ranks. Exchanges add and never divide, so ranks may
  /// have unequal batches, and accumulated micro-batches add up too.
  std::span<float> gradients;
};
struct ParameterRange {
  std::size_t first = 0, count = 0;
};

/// What a rank waits for within passes: sums of gradients, and parameters that other ranks have.
struct ExchangeWaits {
  Seconds gradients{}, parameters{};

  Seconds total() const { return gradients + parameters; }
  ExchangeWaits& operator+=(const ExchangeWaits& more) {
    gradients += more.gradients;
    parameters += more.parameters;
    return *this;
  }
};

/// Wall time of one step's exchange on this rank, in the simulator's words.
struct ExchangeTimes {
  Seconds communication{};                  // all of it, hidden or not
  Seconds exposed_communication{};          // after the backward pass had ended
  Seconds gathering{};                      // of that: for parameters, not for gradients
  Seconds push{}, pull{}, wait{}, apply{};  // parameter server: by phase; else 0 but apply
  Bytes sent{};                             // by this rank, payload
  /// Asynchronous parameter servers: others' updates between this rank's pull and its own update,
  /// mean over groups of layers.
  double delay = 0;  // updates
  /// Nothing was updated on any rank: a gradient of one was not finite (scaled_by()).
  bool skipped = false;
  /// The step to take next: step + 1; later where the others went on without this rank's gradients
  /// (backup workers), which would be dropped again.
  std::int64_t next_step = 0;
};

/// A part of the flat buffers that this rank keeps: its values and, in the order of
/// FlatOptimizer::state(), what the optimizer has of it (empty: it is not trained).
struct KeptPart {
  ParameterRange range;
  std::span<float> values;
  std::vector<std::span<float>> optimizer;
};

/// All of an embedding table of which ranks pull rows, row after row.
struct WholeTable {
  std::size_t table = 0;  // as in need_rows()
  std::vector<float> values;
  std::vector<std::vector<float>> optimizer = {};  // what the optimizer has of it, or left out
};

struct RankProgress {
  std::int64_t steps_done = 0;  // of the whole job, what it was resumed with included
  bool finished = false;        // it has said end_steps()
  bool left = false;
};

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;
  /// Before the first step: every rank gets the same values (rank 0's, or the servers'). The view
  /// stays valid until the exchange is gone.
  virtual void start(ParameterView parameters) = 0;
  /// Where no rank keeps whole parameters: start() takes none, and blocks of them are drawn and
  /// then taken one after the other, so that no rank ever holds all. Empty: start() takes them.
  virtual std::vector<ParameterRange> blocks_to_take() { return {}; }
  virtual void take_block(std::size_t /*of_them*/) {}
  /// Are gradients exchanged in every (micro-)batch's backward pass? Else in a step's last.
  virtual bool exchanges_every_pass() const { return false; }
  /// Does a rank have of embedding tables only the rows that it has asked for in this step? Then
  /// the view has room for those, and need_rows() comes before each forward pass, with the ids that
  /// the batch names.
  virtual bool pulls_rows() const { return false; }
  /// Of the table whose room in the view begins at `table`, the place of each id's row: row r of
  /// the room has its values, and its gradient belongs there. Ids in any order, as often as they
  /// come; a row keeps its place until the step, or forget_passes(), ends. Throws CommError.
  virtual std::vector<std::size_t> need_rows(std::size_t /*table*/,
                                             std::span<const std::int64_t> /*ids*/) {
    return {};
  }
  /// After passes without a gradient: the rows that they asked for, and what they took of the
  /// exchange, are no step's.
  virtual void forget_passes() {}
  /// Before start(), where rows are pulled: who fills in the first values of a whole table. It is
  /// asked on rank 0 alone, for one table after the other.
  virtual void draw_tables_by(
      std::function<void(std::size_t table, std::span<float> values)> /*draw*/) {}
  /// Between steps, whole tables in the order of the view, as all ranks have made them.
  /// Throws CommError.
  virtual std::vector<WholeTable> fetch_tables(bool /*with_optimizer*/) { return {}; }
  /// The optimizer's state of tables, as restore_optimizer_state() does that of the view.
  virtual void restore_tables(std::span<const WholeTable> /*tables*/) {}
  /// Before each backward pass: those of the pass before may still be on their way.
  virtual void begin_backward() {}
  /// How long the thread that computes has waited in passes since the last call.
  virtual ExchangeWaits take_waited() { return {}; }
  /// The gradients of `range` are final; called in the last (micro-)batch's backward pass (or in
  /// every one's), last layer first, from the thread that computes, every trained parameter once.
  /// May begin to send; returns at once. The gradients of `range` may not be touched until
  /// finish_step, or the next begin_backward, returns.
  virtual void gradient_ready(ParameterRange range) = 0;
  /// After the backward pass. On return `values` are those of the next step; gradients are
  /// unspecified (set them to zero). `step` counts optimizer steps from 0; `learning_rate` is this
  /// step's. Throws CommError.
  virtual ExchangeTimes finish_step(std::int64_t step, double learning_rate) = 0;
  /// Behind a finish_step() that threw while ranks agreed to update (AllReduceOptions::
  /// before_update): makes the update that others may have made. nullopt: this rank had not all
  /// sums, so nobody has.
  virtual std::optional<ExchangeTimes> make_up_update() { return std::nullopt; }
  /// Before finish_step(), by all ranks: gradients are `scale` times what they are. Where one of
  /// any rank's is not finite no rank updates anything (ExchangeTimes::skipped). 0: they are not
  /// scaled, nor looked at. The optimizer's count leaves out `skipped` earlier steps, in which that
  /// was so or before which there was none. std::logic_error: this kind does not.
  virtual void scaled_by(double /*scale*/, std::int64_t /*skipped*/) {
    throw std::logic_error("this exchange does not take scaled gradients");
  }
  /// Where ranks take steps of their own but need each other (backup workers), none may stop alone:
  /// asks for a step at which all do, which is chosen in the next finish_step of this rank.
  virtual void request_stop() {}
  /// That step, once it is known: whoever has done so many steps, or more, stops.
  virtual std::optional<std::int64_t> stop_step() const { return std::nullopt; }
  /// Where ranks take steps of their own: with which this rank begins. After start(), and before
  /// any rank's first step. Throws CommError.
  virtual void begin_at(std::int64_t) {}
  /// This rank has taken its last step, and will not leave because it was stopped. Throws
  /// CommError.
  virtual void end_steps() {}
  /// By rank; empty where ranks do not take steps of their own. Throws CommError.
  virtual std::vector<RankProgress> progress() { return {}; }
  /// What the ranks have made together becomes this rank's values, whole; after the last step of
  /// all, by all of them.
  virtual void take_final_values() {}
  /// FlatOptimizer::state() (kernels/optimizer/optimizer.h) of all parameters, for checkpoints,
  /// between start() or finish_step() and the next gradient_ready(). Servers' is fetched from them.
  virtual std::vector<std::span<float>> optimizer_state() = 0;
  /// The same for the rank that reads a checkpoint into it, before the first step: it alone may
  /// call this one, where ranks call the other together.
  virtual std::vector<std::span<float>> optimizer_state_to_restore() { return optimizer_state(); }
  /// What was written into the last optimizer_state() or kept_parts() is to be used from now on (a
  /// checkpoint was read). With servers: one rank calls it, before the first step of any; with
  /// kept_parts() all do.
  virtual void restore_optimizer_state() = 0;
  /// Is state cut over ranks?
  virtual bool keeps_parts() const { return false; }
  /// Then, after start(): all that this rank keeps, ascending, in place of the view's values and of
  /// optimizer_state(); the ranks' parts together are everything once.
  virtual std::vector<KeptPart> kept_parts() { return {}; }
};

}  // namespace reckon
