#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/comm/parameter_server/server/protocol.h"
#include "executor/comm/rendezvous/loss_watch.h"
#include "executor/comm/rendezvous/rendezvous.h"

namespace reckon {

/// A worker's connection to one parameter server, with a thread that sends and receives, so that
/// pushes go out while the worker computes. Errors come out of wait().
class ServerLink {
 public:
  /// Of one step, by phase; they follow each other (pushes with pauses between them).
  struct Times {
    Seconds push{}, wait{}, apply{}, pull{};
    Deadline::Clock::time_point end{};
    std::int64_t next_step = 0, stop_step = kNoStop;
    Bytes sent{};      // gradients, and ids of rows with them and before
    double delay = 0;  // updates: ExchangeTimes::delay
  };

  /// Connects, proves that this is the job's worker, has the server prove itself, and waits to be
  /// welcomed. Throws CommError.
  ServerLink(Membership& membership, const std::string& job_name, const ServerJob& job, int server,
             Seconds timeout);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  // Each returns at once; memory stays untouched until wait() returns.
  void initialize(std::size_t group, std::span<const float> values);
  void push(std::int64_t step, std::size_t group, std::span<const float> gradients);
  /// Of a table: ids of rows, ascending, and behind them their gradients.
  void push_rows(std::int64_t step, std::size_t group, std::span<const std::byte> rows);
  void pull_rows(std::int64_t step, std::size_t group, std::span<const RowId> ids,
                 std::span<float> values);
  /// Until the server has all that was pushed.
  void flush();
  /// All groups but tables into `values`, the flat buffer.
  void pull(std::int64_t step_finished, const StepEnd& end, std::span<float> values);
  void pull_first(std::span<float> values);
  /// All of them, as they are when `step` may begin; `tables`: by group, of its whole size where it
  /// is a table.
  void pull_all(std::int64_t step, std::span<float> values, std::span<std::vector<float>> tables);
  void get_state(std::size_t group, std::span<float> state);
  void put_state(std::size_t group, std::span<const float> state);
  void begin_at(std::int64_t step);
  void end_steps();
  void get_progress(std::vector<RankProgress>& progress);

  /// Until all of it is done. Throws CommError.
  Times wait();

 private:
  void enqueue(std::function<void()> work);
  void serve();
  void do_pull(std::int64_t step, std::span<const std::byte> end, std::span<float> values);
  void send_rows(ServerMessage kind, PushTag tag, std::span<const std::byte> payload);
  void receive_groups(std::size_t groups, std::span<float> values,
                      std::span<std::vector<float>> tables);
  PullReport receive_report();
  void send(ServerMessage kind, std::uint64_t tag, std::span<const std::byte> payload);
  MessageHead expect(ServerMessage kind);
  [[noreturn]] void rethrow(const std::exception& error);

  Membership& membership_;
  const ServerJob& job_;
  const int server_;
  const Seconds timeout_;
  std::optional<Channel> server_channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // [0] is being done
  bool stop_ = false;
  std::exception_ptr failed_;
  Times times_;  // of the link's thread, read after wait()
  std::jthread thread_;
  std::atomic<bool> left_ = false;  // as a rank is lost, though the connection has not ended
  std::optional<LossWatch> watch_;
};

}  // namespace reckon
