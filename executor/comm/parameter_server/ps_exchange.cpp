#include "executor/comm/parameter_server/ps_exchange.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "executor/comm/parameter_server/server/link.h"
#include "executor/comm/parameter_server/table_exchange.h"
#include "sim/base/check.h"

namespace reckon {

namespace {
using Clock = std::chrono::steady_clock;

class PsExchange final : public GradientExchange {
 public:
  PsExchange(Membership& membership, const std::string& job_name, ServerJob job, Seconds timeout)
      : rank_(membership.rank()), job_(std::move(job)) {
    for (int s = 0; s < job_.keys.servers(); ++s)
      links_.push_back(std::make_unique<ServerLink>(membership, job_name, job_, s, timeout));
    for (const ParameterRange& group : job_.keys.groups) {
      std::size_t trained = 0;
      for (const TrainedRange& t : part_of(job_.trained, group.first, group.count))
        trained += t.count;
      trained_.push_back(trained);
    }
    missing_ = trained_;
  }

  void start(ParameterView parameters) override;
  bool pulls_rows() const override { return tables_.any(); }
  std::vector<std::size_t> need_rows(std::size_t table,
                                     std::span<const std::int64_t> ids) override {
    return tables_.need(step_known_ ? step_ : 0, table, ids, parameters_.values);
  }
  void forget_passes() override {
    tables_.drop();
    tables_.take_pulled();
  }
  void draw_tables_by(TableExchange::Draw draw) override { tables_.draw_by(std::move(draw)); }
  std::vector<WholeTable> fetch_tables(bool with_optimizer) override {
    return tables_.fetch(step_known_ ? step_ : 0, parameters_.values,
                         with_optimizer ? state_buffers() : 0);
  }
  void restore_tables(std::span<const WholeTable> tables) override { tables_.restore(tables); }
  void gradient_ready(ParameterRange range) override;
  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override;
  std::vector<std::span<float>> optimizer_state() override;
  void restore_optimizer_state() override;
  void begin_at(std::int64_t step) override;
  void end_steps() override;
  std::vector<RankProgress> progress() override;
  void take_final_values() override;
  void request_stop() override { wants_stop_ = true; }
  std::optional<std::int64_t> stop_step() const override {
    return stop_step_ == kNoStop ? std::nullopt : std::optional(stop_step_);
  }

 private:
  void push(std::size_t group);
  std::vector<ServerLink::Times> wait_for_all();
  void initialize_dense();
  template <class Body>
  void for_each_dense_part(const Body& body);  // body(link, group, server)
  std::size_t state_buffers() const {
    return std::holds_alternative<AdamW>(job_.optimizer) ? 2 : 1;
  }

  const int rank_;
  const ServerJob job_;
  ParameterView parameters_;
  TableExchange tables_{job_, links_};  // goes behind the links, which send what it has
  TableExchange::Links links_;
  std::vector<std::size_t> trained_, missing_;  // by group: keys; of them, not yet ready
  std::int64_t step_ = 0;  // that the next push belongs to; the first is told by finish_step
  bool step_known_ = false;
  bool wants_stop_ = false;
  std::int64_t stop_step_ = kNoStop;  // of the first server: one must choose
  std::optional<Clock::time_point> first_push_;
  std::vector<std::vector<float>> state_;  // optimizer_state()
};

template <class Body>
void PsExchange::for_each_dense_part(const Body& body) {
  for (std::size_t g = 0; g < job_.keys.groups.size(); ++g)
    for (int s = 0; !job_.keys.is_table(g) && s < job_.keys.servers(); ++s)
      body(*links_[std::size_t(s)], g, s);
}

std::vector<ServerLink::Times> PsExchange::wait_for_all() {
  std::vector<ServerLink::Times> times;
  for (const auto& link : links_) times.push_back(link->wait());
  return times;
}

void PsExchange::start(ParameterView parameters) {
  RECKON_CHECK(parameters.values.size() == job_.keys.count());
  RECKON_CHECK(parameters.gradients.size() == job_.keys.count());
  parameters_ = parameters;
  if (rank_ == 0) {
    initialize_dense();
    tables_.initialize();
  }
  for (const auto& link : links_) link->pull_first(parameters.values);
  wait_for_all();
}

void PsExchange::initialize_dense() {
  std::vector<std::vector<float>> first;
  first.reserve(job_.keys.groups.size() * links_.size());
  for_each_dense_part([&](ServerLink& link, std::size_t group, int server) {
    link.initialize(group, first.emplace_back(job_.keys.gather(group, server, parameters_.values)));
  });
  wait_for_all();
}

void PsExchange::gradient_ready(ParameterRange range) {
  RECKON_CHECK(range.first + range.count <= parameters_.gradients.size());
  for (std::size_t g = 0; g < job_.keys.groups.size(); ++g) {
    const ParameterRange group = job_.keys.groups[g];
    const std::size_t begin = std::max(range.first, group.first);
    const std::size_t end = std::min(range.first + range.count, group.first + group.count);
    if (begin >= end || missing_[g] == 0) continue;
    for (const TrainedRange& t : part_of(job_.trained, begin, end - begin)) {
      RECKON_CHECK(t.count <= missing_[g]);  // every gradient is named once
      missing_[g] -= t.count;
    }
    if (missing_[g] == 0 && step_known_) push(g);
  }
}

void PsExchange::push(std::size_t group) {
  if (!first_push_) first_push_ = Clock::now();
  if (job_.keys.is_table(group)) tables_.push(step_, group, parameters_.gradients);
  for (int s = 0; !job_.keys.is_table(group) && s < job_.keys.servers(); ++s) {
    const ParameterRange keys = job_.keys.part(group, s);
    links_[std::size_t(s)]->push(step_, group,
                                 parameters_.gradients.subspan(keys.first, keys.count));
  }
  missing_[group] = std::size_t(-1);  // pushed
}

ExchangeTimes PsExchange::finish_step(std::int64_t step, double learning_rate) {
  const auto backward_end = Clock::now();
  RECKON_CHECK(!step_known_ || step == step_);
  step_ = step;
  step_known_ = true;
  for (std::size_t g = job_.keys.groups.size(); g-- > 0;) {
    RECKON_CHECK(missing_[g] == 0 || missing_[g] == std::size_t(-1));  // every gradient was named
    if (missing_[g] == 0) push(g);
  }
  ExchangeTimes times;
  if (job_.phases_apart) {
    for (const auto& link : links_) link->flush();
    for (const ServerLink::Times& t : wait_for_all()) times.sent += t.sent;
    times.push = Clock::now() - first_push_.value_or(backward_end);
  }
  for (const auto& link : links_)
    link->pull(step, {.learning_rate = learning_rate, .stop = wants_stop_}, parameters_.values);
  times.next_step = std::numeric_limits<std::int64_t>::max();  // the first that a server waits for
  ServerLink::Times last;
  const std::vector<ServerLink::Times> all = wait_for_all();
  stop_step_ = all.front().stop_step;
  for (const ServerLink::Times& t : all) {
    if (t.end >= last.end) last = t;
    times.sent += t.sent;
    times.delay += t.delay / double(all.size());
    times.next_step = std::min(times.next_step, t.next_step);
  }
  times.push += last.push;
  times.wait = last.wait;
  times.apply = last.apply;
  times.pull = last.pull;
  const TableExchange::Pulled rows = tables_.take_pulled();
  times.pull += rows.time;
  times.exposed_communication = Clock::now() - backward_end + rows.time;
  times.communication = Clock::now() - first_push_.value_or(backward_end) + rows.time;
  times.sent += rows.sent;
  tables_.drop();
  first_push_.reset();
  missing_ = trained_;
  step_ = times.next_step;
  return times;
}

std::vector<std::span<float>> PsExchange::optimizer_state() {
  state_.assign(state_buffers(), std::vector<float>(job_.keys.count()));
  std::vector<std::vector<float>> parts;
  parts.reserve(job_.keys.groups.size() * links_.size());
  for_each_dense_part([&](ServerLink& link, std::size_t group, int server) {
    link.get_state(group, parts.emplace_back(job_.keys.count_on(group, server) * state_.size()));
  });
  wait_for_all();
  auto part = parts.cbegin();
  for_each_dense_part([&](ServerLink&, std::size_t group, int server) {
    const std::size_t count = job_.keys.count_on(group, server);
    for (std::size_t b = 0; b < state_.size(); ++b)
      job_.keys.scatter(group, server, std::span(*part).subspan(b * count, count), state_[b]);
    ++part;
  });
  return {state_.begin(), state_.end()};
}

void PsExchange::restore_optimizer_state() {
  RECKON_CHECK(!state_.empty());
  std::vector<std::vector<float>> parts;
  parts.reserve(job_.keys.groups.size() * links_.size());
  for_each_dense_part([&](ServerLink& link, std::size_t group, int server) {
    std::vector<float>& part = parts.emplace_back();
    for (const std::vector<float>& buffer : state_) {
      const std::vector<float> mine = job_.keys.gather(group, server, buffer);
      part.insert(part.end(), mine.begin(), mine.end());
    }
    link.put_state(group, part);
  });
  wait_for_all();
}

void PsExchange::begin_at(std::int64_t step) {
  for (const auto& link : links_) link->begin_at(step);
  wait_for_all();
}
void PsExchange::end_steps() {
  for (const auto& link : links_) link->end_steps();
  wait_for_all();
}

/// What all servers have.
std::vector<RankProgress> PsExchange::progress() {
  std::vector<std::vector<RankProgress>> said(links_.size());
  for (std::size_t s = 0; s < links_.size(); ++s) links_[s]->get_progress(said[s]);
  wait_for_all();
  std::vector<RankProgress> all = said.front();
  for (const auto& one : said)
    for (std::size_t w = 0; w < all.size(); ++w) {
      all[w].steps_done = std::min(all[w].steps_done, one[w].steps_done);
      all[w].finished = all[w].finished && one[w].finished;
      all[w].left = all[w].left && one[w].left;
    }
  return all;
}

/// Servers give what they hold at this moment to whoever asks for the first values.
void PsExchange::take_final_values() {
  for (const auto& link : links_) link->pull_first(parameters_.values);
  wait_for_all();
}
}  // namespace

std::unique_ptr<GradientExchange> make_ps_exchange(Membership& membership,
                                                   const std::string& job_name, ServerJob job,
                                                   Seconds timeout) {
  return std::make_unique<PsExchange>(membership, job_name, std::move(job), timeout);
}

}  // namespace reckon
