#include "cli/probe/doctor_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/exit_code.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "executor/train/records/run_check.h"
#include "executor/train/records/run_directory.h"
#include "sim/base/text/shell_word.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;
using State = RunFinding::State;
using Json = nlohmann::ordered_json;

/// A finding, and whether it has been put right.
struct Judged {
  RunFinding finding;
  bool repaired = false;
  std::string_view word() const {
    if (repaired) return "repaired";
    return finding.state == State::sound     ? "OK"
           : finding.state == State::damaged ? "damaged"
                                             : "lost";
  }
};

std::string next_step(const RunCheck& check, const std::vector<Judged>& all, const fs::path& run) {
  if (check.in_use) return fmt::format("{} uses it: nothing was repaired\n", check.holder);
  for (const Judged& j : all)
    if (j.finding.state == State::damaged && !j.repaired)
      return fmt::format("repair it with: reckon doctor {}\n", shell_word(run.string()));
  return "";
}

std::string run_as_text(const RunCheck& check, const std::vector<Judged>& all,
                        const fs::path& run) {
  std::string out = run.string() + "\n\n";
  for (const Judged& j : all) {
    std::string name = j.finding.name;
    std::string word(j.word());
    for (const std::string& detail : j.finding.details) {
      out += fmt::format("{:<18} {:<9} {}\n", name, word, detail);
      name = word = "";
    }
    if ((j.finding.state != State::sound || j.repaired) && !j.finding.todo.empty())
      out += fmt::format("{:<28} {}: {}\n", "", j.repaired ? "done" : "to do", j.finding.todo);
  }
  out += check.resumes_at ? fmt::format("\n--resume goes on from step {}\n", *check.resumes_at)
                          : "\n--resume begins at step 0\n";
  return out + next_step(check, all, run);
}

std::string run_as_json(const RunCheck& check, const std::vector<Judged>& all,
                        const fs::path& run) {
  Json findings = Json::array();
  for (const Judged& j : all)
    findings.push_back({{"name", j.finding.name},
                        {"state", j.word()},
                        {"details", j.finding.details},
                        {"what_to_do", j.finding.todo}});
  const Json out{{"schema_version", 1},
                 {"command", "doctor"},
                 {"run", run.string()},
                 {"in_use", check.in_use},
                 {"resumes_at", check.resumes_at ? Json(*check.resumes_at) : Json()},
                 {"findings", std::move(findings)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

int run_doctor_of(const std::string& name, bool check, OutputFormat format) {
  const fs::path run = name;
  if (!fs::is_directory(run)) throw UsageError(fmt::format("{}: there is no such directory", name));
  if (!is_run_directory(run))
    throw UsageError(fmt::format("{} is not a run directory: it has none of its files", name));
  RunLock::Look look = RunLock::look(run);
  std::optional<RunLock> lock;  // nobody starts a run here meanwhile
  if (!check && !look.held) {
    lock = RunLock::if_free(run);
    if (!lock) look = RunLock::look(run);
  }
  const RunCheck found = check_run(run, look);
  const bool removes_lock = lock && (look.dead || look.holder.empty());
  std::vector<Judged> all;
  for (const RunFinding& finding : found.findings) {
    all.push_back({finding});
    if (finding.name == "lock") all.back().repaired = removes_lock && look.dead;
    if (!lock || finding.repairs.empty()) continue;
    repair(finding);
    all.back().repaired = true;
  }
  if (removes_lock) lock->remove(run);
  print(format == OutputFormat::json ? run_as_json(found, all, run) : run_as_text(found, all, run));
  for (const Judged& j : all)
    if (j.finding.state != State::sound && !j.repaired) return kAnswerIsNo;
  return kDone;
}

}  // namespace reckon::cli
