#include <nlohmann/json.hpp>
#include <set>

#include "report/json.h"

namespace reckon {
namespace {

using TraceJson = nlohmann::json;

constexpr int kJobProcess = 1;
int process_of(int pool) { return pool < 0 ? kJobProcess : kJobProcess + 1 + pool; }
int thread_of(int node) { return node < 0 ? 0 : node; }

double microseconds(SimDuration d) { return double(d.count()) / 1000; }

TraceJson metadata(const char* name, int process, int thread, TraceJson args) {
  return {
      {"ph", "M"}, {"name", name}, {"pid", process}, {"tid", thread}, {"args", std::move(args)}};
}

void name_processes(const Plan& plan, TraceJson& events) {
  const auto name = [&](int process, const std::string& text) {
    events.push_back(metadata("process_name", process, 0, {{"name", text}}));
    events.push_back(metadata("process_sort_index", process, 0, {{"sort_index", process}}));
  };
  name(kJobProcess, plan.jobs.size() == 1 ? "job " + plan.only_job().name : "jobs");
  for (std::size_t k = 0; k < plan.pools.size(); ++k)
    name(process_of(int(k)), "pool " + plan.pools[k].name);
}

void name_threads(const Plan& plan, const Timeline& timeline, TraceJson& events) {
  std::set<std::pair<int, int>> seen;
  for (const Span& s : timeline.spans) seen.emplace(s.pool, s.node);
  for (const Mark& m : timeline.marks) seen.emplace(m.pool, m.node);
  for (const auto& [pool, node] : seen) {
    const std::string owner = pool < 0 ? "job" : plan.pools.at(std::size_t(pool)).name;
    const std::string text = node < 0   ? owner
                             : pool < 0 ? plan.jobs.at(std::size_t(node)).name
                                        : owner + "-" + std::to_string(node);
    events.push_back(metadata("thread_name", process_of(pool), thread_of(node), {{"name", text}}));
  }
}

}  // namespace

std::string trace_json(const Plan& plan, const LifeResult& life) {
  TraceJson events = TraceJson::array();
  name_processes(plan, events);
  name_threads(plan, life.timeline, events);
  for (const Span& s : life.timeline.spans)
    events.push_back({{"ph", "X"},
                      {"name", s.name},
                      {"cat", s.category},
                      {"pid", process_of(s.pool)},
                      {"tid", thread_of(s.node)},
                      {"ts", microseconds(s.begin - SimTime{})},
                      {"dur", microseconds(s.end - s.begin)}});
  for (const Mark& m : life.timeline.marks)
    events.push_back({{"ph", "i"},
                      {"s", "t"},
                      {"name", m.name},
                      {"pid", process_of(m.pool)},
                      {"tid", thread_of(m.node)},
                      {"ts", microseconds(m.at - SimTime{})}});
  const TraceJson document = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return document.dump(1, ' ', false, TraceJson::error_handler_t::replace) + '\n';
}

}  // namespace reckon
