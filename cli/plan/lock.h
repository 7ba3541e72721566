#pragma once
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/load/load.h"
#include "planner/lock/lock.h"
#include "report/check/lock_change.h"

// Locks (planner/lock/lock.h) of `plan` and `check`: made from what a command loaded, and catalogs
// as they were.
namespace reckon::cli {

/// "a/q.yaml" -> "a/q.lock.json".
std::filesystem::path lock_beside(const std::filesystem::path& scenario);
/// nullopt: there is none. Errors: it is no lock.
Expected<std::optional<planner::Lock>> read_lock_beside(const std::string& scenario);

/// What an answer is asked of.
struct LockSubject {
  std::string file;                 // the scenario's path
  std::string text;                 // as one document, with the command line's changes
  std::set<std::string> providers;  // whose prices the answer may use
  std::vector<std::string> used;    // ids of runs that its step rests on
};
/// Without `forecast` and `plan`.
planner::Lock lock_of(const LockSubject& subject, const CatalogChoice& choice,
                      const LoadedCatalog& catalog);
/// The scenario's text of a LockSubject. Errors as reading it.
Expected<std::string> locked_text(const std::string& file, const ScenarioChanges& changes);
/// Writes it beside the scenario, in one piece.
void write_lock_beside(const std::string& scenario, const planner::Lock& lock);

/// Files that the scenario names and that were changed since, as the lock names them.
/// `text`: of `scenario` today, as locked_text() has it.
std::vector<std::string> changed_files(const planner::Lock& lock, const std::string& scenario,
                                       const std::string& text);

/// Which inputs are no longer what they were.
struct InputChanges {
  bool edited = false, repriced = false, evidence = false;
  bool any() const { return edited || repriced || evidence; }
};

/// Catalogs as of a lock, for swapping one input after the other.
class LockedCatalogs {
 public:
  /// `today` is what the choice loads. All stay.
  LockedCatalogs(const planner::Lock& lock, const CatalogChoice& choice,
                 const LoadedCatalog& today);
  /// `edited` is for the caller to say.
  InputChanges changes() const { return changes_; }
  /// Prices and evidence of then; evidence of then. Errors: a calibration of then does not lie over
  /// today's catalog.
  Expected<const LoadedCatalog*> then();
  Expected<const LoadedCatalog*> evidence_of_then();
  /// Versions, dates, and what could not be brought back.
  std::vector<std::string> notes() const;
  /// Was it made by this reckon? Then nothing is reckon's share but other facts of the catalog.
  bool same_reckon() const;

 private:
  Expected<const LoadedCatalog*> swapped(std::optional<LoadedCatalog>& made, bool prices);

  const planner::Lock& lock_;
  const CatalogChoice& choice_;
  const LoadedCatalog& today_;
  std::vector<planner::LockedPrice> prices_;  // today's
  std::vector<planner::LockedSource> evidence_;
  std::size_t lost_ = 0;
  InputChanges changes_;
  std::optional<LoadedCatalog> then_, evidence_then_;
};

}  // namespace reckon::cli
