#include <utility>

#include "planner/question/reader.h"

// The `plan:` block, read into a question.
namespace reckon::planner {

void QuestionReader::read_all() {
  const Scenario& s = q_.file.scenario;
  if (s.trace)
    return error("trace", "only 'reckon simulate' and 'reckon check' answer a trace of jobs",
                 "give one workload: instead of trace:");
  if (s.arrivals)
    return error("arrivals", "only 'reckon simulate' and 'reckon check' answer a queue of jobs",
                 "give one workload: instead of arrivals:");
  if (s.has_queued_jobs())
    return error("jobs", "only 'reckon simulate' and 'reckon check' answer a queue of jobs",
                 "give one workload: instead of jobs:");
  if (!s.workload)
    return error("workload", "`reckon plan` plans one workload, and the scenario has none",
                 "plan each of several jobs by itself");
  if (s.cluster.pools.empty())
    return error("cluster", "the cluster has no pools of its own",
                 "`reckon plan` varies a pool: write one instead of a scale tier");
  if (!can_vary_pools(s)) return;
  static const PlanSpec kNone;
  const PlanSpec& spec = s.plan ? *s.plan : kNone;
  vary_ = &spec.vary;
  read_hardware(s);
  read_scaling(s);
  read_nodes(s);
  read_strategies(s);
  read_limits(spec);
  q_.quota = spec.quota;
  q_.max_nodes = spec.max_nodes;
  read_memory(spec.memory);
  read_zones();
  read_bounds(s);
  read_server_machines(s);
  read_checkpoints();
  read_mixes(s);
  read_restarts(*s.workload);
  q_.residency = spec.residency;
  q_.carbon_free = spec.carbon_free;
  q_.energy_joules = spec.energy_joules;
  q_.co2_grams = spec.co2_grams;
  check_residency();
  q_.objective = spec.objective.value_or(Objective::cost);
  if (q_.objective == Objective::cost_under_deadline && !q_.deadline)
    error("plan.objective", "cost_under_deadline needs a deadline", "deadline: 72h@95%");
}

void QuestionReader::error(const std::string& path, std::string what, std::string hint) {
  problems.push_back(
      {Severity::error, q_.file.places.find(path), std::move(what), std::move(hint)});
}

const std::vector<std::string>* QuestionReader::varied(const std::string& key) const {
  const auto found = vary_->find(key);
  return found == vary_->end() ? nullptr : &found->second;
}

Expected<Question> make_question(Base base, const Catalog& catalog) {
  Question question;
  auto file = read(base);
  if (!file) return tl::unexpected(std::move(file.error()));
  question.base = std::move(base);
  question.file = std::move(*file);
  QuestionReader reader(question, catalog);
  reader.read_all();
  if (!reader.problems.empty()) return tl::unexpected(std::move(reader.problems));
  return question;
}

}  // namespace reckon::planner
