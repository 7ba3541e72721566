#pragma once
#include <cstdint>
#include <string>

#include "executor/comm/parameter_server/server/state.h"
#include "executor/comm/wire.h"

// What workers and parameter servers say to each other. A worker pushes its groups as they become
// ready, then asks with one `pull`; the server answers `pushed` (all has arrived), the values group
// by group, and `pulled`.
namespace reckon {

enum class ServerMessage : std::uint16_t {
  hello = 101,  // worker -> server: Greeting
  welcome,
  refused,     // text
  initialize,  // tag: group; values
  push,        // tag: step and group; gradients
  pull,        // tag: step finished + 1; payload: StepEnd
  pushed,
  values,  // tag: group
  pulled,  // PullReport
  failed,  // ServerFailure; the server ends
  leave,
  get_state,  // tag: group; answered by `state`
  state,
  put_state,  // tag: group; answered by `stored`
  stored,
  flush,      // answered by `pushed`
  begin,      // tag: the worker's first step; answered by `stored`
  end,        // the worker has taken its last step; answered by `stored`
  progress,   // answered by the same: all workers' RankProgress
  push_rows,  // tag: step and group; ids of its rows, ascending, then their gradients
  pull_rows,  // tag: step to begin and group; ids of its rows; answered by `rows`
  rows,       // tag: group; their values, in the order of the ids
  pull_all,   // tag: step to begin; answered as a pull, with tables
};
using RowId = std::int64_t;  // kRowId bytes
static_assert(sizeof(RowId) == std::size_t(kRowId.v));
inline constexpr std::uint64_t kControlMessageLimit = 1 << 16;

struct PushTag {
  std::int64_t step = 0;
  std::size_t group = 0;
};
inline constexpr std::size_t kMostGroups = 1 << 16;
inline std::uint64_t encode(PushTag tag) {
  return std::uint64_t(tag.step) * kMostGroups + tag.group;
}
inline PushTag decode_push_tag(std::uint64_t tag) {
  return {.step = std::int64_t(tag / kMostGroups), .group = std::size_t(tag % kMostGroups)};
}

/// The first message of a worker, whose job and rank the handshake has told.
struct Greeting {
  int attempt = 0, worker = 0;
  std::uint64_t digest = 0;  // ServerJob::digest()
};
std::vector<std::byte> encode(const Greeting& greeting);
Greeting decode_greeting(std::span<const std::byte> bytes);

/// The server's side of one pull.
struct PullReport {
  Seconds waited{};  // no group was ready to be sent
  Seconds apply{};   // updates of this step
  std::int64_t next_step = 0;
  std::int64_t stop_step = kNoStop;  // at which all workers stop
  double delay = 0;                  // updates, of the worker's: ExchangeTimes::delay
};
std::vector<std::byte> encode(const PullReport& report);
PullReport decode_pull_report(std::span<const std::byte> bytes);

std::vector<std::byte> encode(const ServerFailure& failure);
ServerFailure decode_failure(std::span<const std::byte> bytes);

std::vector<std::byte> encode(const std::vector<RankProgress>& progress);
std::vector<RankProgress> decode_progress(std::span<const std::byte> bytes);

/// A worker has pushed all of a step.
struct StepEnd {
  double learning_rate = 0;  // of this step, as the worker has it
  bool stop = false;         // it wants all to stop
};
std::vector<std::byte> encode(const StepEnd& end);
StepEnd decode_step_end(std::span<const std::byte> bytes);

}  // namespace reckon
