#include "executor/comm/parameter_server/server/protocol.h"

#include <bit>

namespace reckon {

namespace {
std::vector<std::byte> taken(const FieldWriter& fields) {
  return {fields.bytes().begin(), fields.bytes().end()};
}
std::int64_t bits(double value) { return std::bit_cast<std::int64_t>(value); }
double real(FieldReader& fields) { return std::bit_cast<double>(fields.number()); }
}  // namespace

std::vector<std::byte> encode(const Greeting& greeting) {
  FieldWriter fields;
  fields.number(greeting.attempt).number(greeting.worker);
  fields.number(std::bit_cast<std::int64_t>(greeting.digest));
  return taken(fields);
}
Greeting decode_greeting(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  Greeting greeting;
  greeting.attempt = int(fields.number());
  greeting.worker = int(fields.number());
  greeting.digest = std::bit_cast<std::uint64_t>(fields.number());
  return greeting;
}

std::vector<std::byte> encode(const PullReport& report) {
  FieldWriter fields;
  fields.number(bits(report.waited.count())).number(bits(report.apply.count()));
  fields.number(report.next_step).number(report.stop_step).number(bits(report.delay));
  return taken(fields);
}
PullReport decode_pull_report(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  PullReport report;
  report.waited = Seconds{real(fields)};
  report.apply = Seconds{real(fields)};
  report.next_step = fields.number();
  report.stop_step = fields.number();
  report.delay = real(fields);
  return report;
}

std::vector<std::byte> encode(const ServerFailure& failure) {
  FieldWriter fields;
  fields.text(failure.what).number(std::int64_t(failure.peers.size()));
  for (const int peer : failure.peers) fields.number(peer);
  return taken(fields);
}
ServerFailure decode_failure(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  ServerFailure failure;
  failure.what = fields.text();
  const std::int64_t count = fields.number();
  for (std::int64_t i = 0; i < count; ++i) failure.peers.push_back(int(fields.number()));
  return failure;
}

std::vector<std::byte> encode(const std::vector<RankProgress>& progress) {
  FieldWriter fields;
  fields.number(std::int64_t(progress.size()));
  for (const RankProgress& rank : progress)
    fields.number(rank.steps_done).number(rank.finished ? 1 : 0).number(rank.left ? 1 : 0);
  return taken(fields);
}
std::vector<RankProgress> decode_progress(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  std::vector<RankProgress> progress;
  const std::int64_t count = fields.number();
  for (std::int64_t i = 0; i < count; ++i) {
    RankProgress& rank = progress.emplace_back();
    rank.steps_done = fields.number();
    rank.finished = fields.number() != 0;
    rank.left = fields.number() != 0;
  }
  return progress;
}

std::vector<std::byte> encode(const StepEnd& end) {
  FieldWriter fields;
  fields.number(bits(end.learning_rate)).number(end.stop ? 1 : 0);
  return taken(fields);
}
StepEnd decode_step_end(std::span<const std::byte> bytes) {
  FieldReader fields{bytes};
  StepEnd end;
  end.learning_rate = real(fields);
  end.stop = fields.number() != 0;
  return end;
}

}  // namespace reckon
