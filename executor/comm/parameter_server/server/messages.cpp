#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/parameter_server/server/process.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

/// So many rows of a message, each of `each` bytes.
std::size_t rows_of(const MessageHead& head, std::size_t each) {
  if (head.length % each != 0)
    throw WireError(fmt::format("{} bytes for rows of {}", head.length, each));
  return head.length / each;
}

}  // namespace

/// One message; false: the worker leaves.
bool ParameterServer::handle(Channel& channel, int worker) {
  constexpr Seconds kAnyTime{1e8};  // computing a step may take long; keep-alive finds dead hosts
  const Deadline deadline = Deadline::after(kAnyTime);
  const MessageHead head = receive_head(channel, std::uint64_t{1} << 40, deadline);
  switch (ServerMessage(head.kind)) {
    case ServerMessage::push:
      receive_push(channel, worker, head);
      return true;
    case ServerMessage::pull:
      answer_pull(channel, worker, head);
      return true;
    case ServerMessage::push_rows:
      receive_rows(channel, worker, head);
      return true;
    case ServerMessage::pull_rows:
      answer_rows(channel, worker, head);
      return true;
    case ServerMessage::pull_all:
      reply(channel, ServerMessage::pushed, head.tag, {});
      send_values(channel, worker, std::int64_t(head.tag), true);
      return true;
    case ServerMessage::initialize:
      receive_values(channel, head, false);
      return true;
    case ServerMessage::put_state:
      receive_values(channel, head, true);
      reply(channel, ServerMessage::stored, head.tag, {});
      return true;
    case ServerMessage::get_state:
      send_state(channel, head.tag);
      return true;
    case ServerMessage::flush:
      reply(channel, ServerMessage::pushed, head.tag, {});
      return true;
    case ServerMessage::begin:
      state_.begin(worker, std::int64_t(head.tag));
      reply(channel, ServerMessage::stored, head.tag, {});
      return true;
    case ServerMessage::end:
      state_.ended(worker);
      reply(channel, ServerMessage::stored, head.tag, {});
      return true;
    case ServerMessage::progress:
      reply(channel, ServerMessage::progress, 0, encode(state_.progress()));
      return true;
    case ServerMessage::leave:
      return false;
    default:
      throw WireError(fmt::format("message of kind {}", head.kind));
  }
}

void ParameterServer::receive_values(Channel& channel, const MessageHead& head, bool state) {
  if (head.tag >= state_.groups()) throw WireError(fmt::format("group {}", head.tag));
  const std::size_t buffers = state ? state_.optimizer_state(head.tag).size() : 0;
  const std::size_t count = state ? buffers : state_.group_size(head.tag);
  if (head.length != count * sizeof(float))
    throw WireError(fmt::format("{} bytes for a group of {} numbers", head.length, count));
  std::vector<float> values(count);
  receive_payload(channel, head, std::as_writable_bytes(std::span(values)),
                  Deadline::after(timeout_));
  if (state)
    RECKON_CHECK(state_.set_optimizer_state(head.tag, values));
  else
    state_.initialize(head.tag, values);
}

void ParameterServer::receive_push(Channel& channel, int worker, const MessageHead& head) {
  const PushTag tag = decode_push_tag(head.tag);
  if (tag.group >= state_.groups()) throw WireError(fmt::format("group {}", tag.group));
  if (state_.is_table(tag.group)) throw WireError(fmt::format("group {} without rows", tag.group));
  const std::span<float> buffer = state_.push_buffer(worker, tag.group);
  if (head.length != buffer.size_bytes())
    throw WireError(fmt::format("{} bytes for a group of {}", head.length, buffer.size_bytes()));
  receive_payload(channel, head, std::as_writable_bytes(buffer), Deadline::after(timeout_));
  state_.count(Bytes{double(head.length)}, Bytes{});
  if (!state_.pushed(worker, tag.step, tag.group))
    throw WireError(fmt::format("gradients of step {} out of turn", tag.step));
}

void ParameterServer::receive_rows(Channel& channel, int worker, const MessageHead& head) {
  const PushTag tag = decode_push_tag(head.tag);
  if (tag.group >= state_.groups() || !state_.is_table(tag.group))
    throw WireError(fmt::format("rows of group {}", tag.group));
  const std::size_t width = state_.width(tag.group);
  const std::size_t each = sizeof(RowId) + width * sizeof(float), rows = rows_of(head, each);
  if (rows * width > state_.group_size(tag.group))
    throw WireError(fmt::format("{} rows for group {}", rows, tag.group));
  std::vector<std::byte> payload(head.length);
  receive_payload(channel, head, payload, Deadline::after(timeout_));
  std::vector<RowId> ids(rows);
  std::vector<float> gradients(rows * width);
  const std::span<const std::byte> read = payload;  // of no rows: both copies are of nothing
  std::ranges::copy(read.first(rows * sizeof(RowId)),
                    std::as_writable_bytes(std::span(ids)).begin());
  std::ranges::copy(read.subspan(rows * sizeof(RowId)),
                    std::as_writable_bytes(std::span(gradients)).begin());
  state_.count(Bytes{double(head.length)}, Bytes{});
  if (!state_.push_rows(worker, tag.group, std::move(ids), std::move(gradients)))
    throw WireError(fmt::format("rows of group {} that are not this server's", tag.group));
  if (!state_.pushed(worker, tag.step, tag.group))
    throw WireError(fmt::format("gradients of step {} out of turn", tag.step));
}

void ParameterServer::answer_rows(Channel& channel, int worker, const MessageHead& head) {
  const PushTag tag = decode_push_tag(head.tag);
  if (tag.group >= state_.groups() || !state_.is_table(tag.group))
    throw WireError(fmt::format("rows of group {}", tag.group));
  const std::size_t rows = rows_of(head, sizeof(RowId));
  if (rows * state_.width(tag.group) > state_.group_size(tag.group))
    throw WireError(fmt::format("{} rows of group {}", rows, tag.group));
  std::vector<RowId> ids(rows);
  receive_payload(channel, head, std::as_writable_bytes(std::span(ids)), Deadline::after(timeout_));
  const auto values = state_.wait_rows(worker, tag.step, tag.group, ids, Deadline::after(timeout_));
  if (!values) give_up_on(tag.step);
  reply(channel, ServerMessage::rows, tag.group, std::as_bytes(std::span(*values)));
  state_.count(Bytes{double(head.length)}, Bytes{double(values->size() * sizeof(float))});
}

/// The values of `step` did not come in time, or the job has failed.
void ParameterServer::give_up_on(std::int64_t step) {
  std::vector<int> missing = state_.behind(step - 1);
  std::vector<std::string> names;
  for (int& worker : missing) {
    worker = job_.rank_of_worker(worker);
    names.push_back(membership_.name_of(worker));
  }
  state_.fail(fmt::format("no gradients of step {} for {:.3g} s from {}", step - 1,
                          timeout_.count(), fmt::join(names, ", ")),
              missing);  // no effect where the wait ended by another failure
  throw std::runtime_error("the server ends");
}

void ParameterServer::answer_pull(Channel& channel, int worker, const MessageHead& head) {
  if (head.length > kControlMessageLimit) throw WireError("a pull with a payload");
  std::vector<std::byte> payload(head.length);
  receive_payload(channel, head, payload, Deadline::after(timeout_));
  reply(channel, ServerMessage::pushed, head.tag, {});
  const auto step = std::int64_t(head.tag);  // to begin; 0 without a payload: the first values
  if (!payload.empty()) {
    const StepEnd end = decode_step_end(payload);
    if (end.stop) state_.request_stop();
    if (!state_.finished(worker, step - 1, end.learning_rate))
      throw WireError(
          fmt::format("another learning rate in step {} than other workers'", step - 1));
  }
  send_values(channel, worker, step, false);
}

/// All groups but tables; with `tables` these too, whole.
void ParameterServer::send_values(Channel& channel, int worker, std::int64_t step, bool tables) {
  std::vector<bool> sent(state_.groups());
  for (std::size_t g = 0; g < sent.size(); ++g) sent[g] = state_.is_table(g) && !tables;
  std::vector<float> values;
  PullReport report;
  for (std::ptrdiff_t left = std::ranges::count(sent, false); left > 0; --left) {
    const auto begin = std::chrono::steady_clock::now();
    const auto ready = state_.wait_values(worker, step, sent, values, Deadline::after(timeout_));
    report.waited += std::chrono::steady_clock::now() - begin;
    if (!ready) give_up_on(step);
    reply(channel, ServerMessage::values, ready->group, std::as_bytes(std::span(values)));
    state_.count(Bytes{}, Bytes{double(values.size() * sizeof(float))});
  }
  report.apply = state_.apply_time(step - 1);
  report.next_step = step > 0 ? state_.next_step(step - 1) : 0;
  report.stop_step = state_.stop_step();
  report.delay = state_.delay_of(worker);
  reply(channel, ServerMessage::pulled, 0, encode(report));
}

void ParameterServer::send_state(Channel& channel, std::size_t group) {
  if (group >= state_.groups()) throw WireError(fmt::format("group {}", group));
  const std::vector<float> values = state_.optimizer_state(group);
  reply(channel, ServerMessage::state, group, std::as_bytes(std::span(values)));
}
}  // namespace reckon
