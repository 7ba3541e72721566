#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "executor/comm/parameter_server/server/keys.h"
#include "executor/comm/socket.h"
#include "sim/base/quantity.h"

// One parameter server's keys and the rules of when they change: no sockets. From any thread, each
// worker's calls from one at a time.
namespace reckon {

struct ServerReport {
  std::int64_t updates = 0;   // of a group
  std::int64_t dropped = 0;   // pushes that came after their step was taken
  std::int64_t lead_max = 0;  // asynchronous: steps that a worker was ahead of the slowest
  Bytes received{}, sent{};   // payload
  Seconds apply{};            // adding up and optimizer
  /// Asynchronous: others' updates of a group between a worker's pull and its own update, mean.
  double delay = 0;  // updates
};

inline constexpr std::int64_t kNoStop = std::numeric_limits<std::int64_t>::max();

/// Why the server ended; every waiting worker is told.
struct ServerFailure {
  std::string what;
  std::vector<int> peers;
};

class ServerState {
 public:
  ServerState(const ServerJob& job, int server);

  std::size_t groups() const { return groups_.size(); }
  std::size_t group_size(std::size_t group) const { return groups_[group].values.size(); }
  bool is_table(std::size_t group) const { return job_.keys.is_table(group); }
  /// Of a table, numbers of one row.
  std::size_t width(std::size_t group) const { return groups_[group].width; }

  /// First values of a group; from worker 0, before anything else.
  void initialize(std::size_t group, std::span<const float> values);
  /// Where to put the gradients that `worker` pushes next for `group`; group_size() long.
  std::span<float> push_buffer(int worker, std::size_t group);
  /// Of a table, in its place: the rows of the whole table that `worker` pushes next and their
  /// gradients, row after row. False: not ascending, or not all this server's.
  bool push_rows(int worker, std::size_t group, std::vector<std::int64_t> ids,
                 std::vector<float> gradients);
  /// They are there: the gradients of `step`. False: a step that the server does not expect.
  bool pushed(int worker, std::int64_t step, std::size_t group);
  /// `worker` has pushed all groups of `step`. False: its learning rate is not the others'.
  bool finished(int worker, std::int64_t step, double learning_rate);
  /// Workers that take steps of their own: with which `worker` begins, and that it has taken its
  /// last.
  void begin(int worker, std::int64_t step);
  void ended(int worker);
  void left(int worker);
  std::vector<RankProgress> progress() const;

  struct Values {
    std::size_t group = 0;
    std::int64_t version = 0;
  };
  /// Waits for a group, of those not yet `sent`, whose values `worker` needs for `step`, and copies
  /// them to `to` (resized). nullopt: the deadline passed, or failure(). Tables are groups like
  /// others here: who pulls their rows alone says that they are sent.
  std::optional<Values> wait_values(int worker, std::int64_t step, std::vector<bool>& sent,
                                    std::vector<float>& to, Deadline deadline);
  /// Waits for a table's values for `step` and copies the rows of `ids`. Nothing where the deadline
  /// passed, or failure(); throws WireError where one is not this server's.
  std::optional<std::vector<float>> wait_rows(int worker, std::int64_t step, std::size_t group,
                                              std::span<const std::int64_t> ids, Deadline deadline);
  /// Workers that have not finished `step`.
  std::vector<int> behind(std::int64_t step) const;
  /// The step that a worker that has finished `step` takes next, now that it is told: the first
  /// that some group of this server still waits for.
  std::int64_t next_step(std::int64_t step);
  /// A worker wants all to stop: chooses a step that none has been told to take yet.
  void request_stop();
  /// kNoStop where nobody wants it.
  std::int64_t stop_step() const;
  /// Of a worker's last update, as ServerReport::delay; of synchronous workers 0.
  /// Updates.
  double delay_of(int worker) const;
  /// Seconds spent on updating groups for `step`.
  Seconds apply_time(std::int64_t step) const;

  void fail(const std::string& what, std::vector<int> peers);
  std::optional<ServerFailure> failure() const;
  bool all_left() const;
  void count(Bytes received, Bytes sent);
  ServerReport report() const;

  /// Optimizer state of a group, one buffer after the other, for checkpoints between two steps.
  std::vector<float> optimizer_state(std::size_t group);
  /// False: of another size.
  bool set_optimizer_state(std::size_t group, std::span<const float> state);

 private:
  struct Group {
    std::mutex
        mutex;  // of values and optimizer; never taken with mutex_ held, nor the other way round
    std::vector<float> values;
    std::optional<FlatOptimizer> optimizer;
    std::vector<std::vector<float>> gradients;      // by worker
    std::size_t width = 0;                          // of a table: numbers of a row
    std::vector<std::vector<std::int64_t>> places;  // of a table, by worker: of the pushed rows
    std::vector<std::int64_t> read;                 // by worker: version that it has pulled
    std::vector<float> sum;
    std::vector<int> arrived;  // workers, of step `version`
    std::int64_t version = 0;  // updates so far
    bool initialized = false, applying = false;
    bool begun = false;  // the first push says with which step (a job may resume)
  };

  std::size_t needed() const { return std::size_t(job_.workers - job_.backup_workers); }
  void apply_complete(std::unique_lock<std::mutex>& lock);
  // `scale`: factor on the sum of the workers' gradients.
  void apply(Group& group, std::span<const int> workers, double scale, std::int64_t step,
             double learning_rate);
  void apply_rows(Group& group, std::span<const int> workers, double scale, std::int64_t step,
                  double learning_rate);
  bool wait_for_change(std::unique_lock<std::mutex>& lock, std::int64_t step, Deadline deadline);
  bool ready(const Group& group, std::int64_t step) const;
  bool step_ready(std::int64_t step) const;
  std::vector<int> missed(std::int64_t step) const;
  bool may_begin(std::int64_t step) const;
  std::int64_t slowest_finished() const;
  std::int64_t steps_begun_with() const;

  const ServerJob job_;
  const int server_;
  std::deque<Group> groups_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, double> learning_rates_;  // synchronous: of steps not yet taken
  std::map<std::int64_t, Seconds> apply_times_;    // of the last steps
  std::vector<std::int64_t> finished_;             // by worker: the last step; -1: none
  std::vector<RankProgress> progress_;             // by worker
  std::int64_t furthest_ = 0;                      // step that a worker was told to take
  std::int64_t stop_step_ = kNoStop;
  std::vector<double> delays_;  // updates, by worker, of its last update: mean over groups
  double delay_sum_ = 0;        // updates, over all updates of all groups
  std::optional<ServerFailure> failure_;
  ServerReport report_;
};

}  // namespace reckon
