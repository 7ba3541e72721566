#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/scenario/plan.h"

// What a run is of, in one file: the plan with every name resolved, so that whoever runs it,
// watches it or compares it with its forecast reads no scenario and no catalog again.
//
// The file is one line of text and a gzip member:
//   reckon-plan VERSION DIGEST CHECKSUM\n
// DIGEST is XXH3-64 of the plan's JSON text (keys sorted, no spaces), 16 hexadecimal digits: the
// plan's name among all plans. CHECKSUM is XXH3-64 of the version and the compressed bytes. `tail
// -n +2 FILE | zcat` shows the JSON.
namespace reckon {

/// The plan was made for another place than the one it runs at.
struct Rebinding {
  std::string target;  // "this machine"
  std::string from;    // digest of the artifact that it was made of
};

struct RunArtifact {
  Plan plan;
  std::optional<ContainerSpec> container;  // a program of the user's own, in place of our worker
  /// As one document, what it extends and what the command line changed in it: the job, for whoever
  /// asks for it again with the facts of another catalog.
  std::string scenario;
  /// Where it stood: relative paths in it, as that of the samples, go by its directory. Relative
  /// itself: by the artifact's own.
  std::string file;
  std::optional<Rebinding> rebound;
  /// What the cluster that it runs in calls things; empty: it runs in none.
  std::vector<ClusterNames> names;
  bool owned = false;  // its machines are the user's own (ProviderRules::owned)
};

inline constexpr int kArtifactVersion = 4;
/// How an artifact begins, and no scenario does.
inline constexpr std::string_view kArtifactMagic = "reckon-plan ";
bool is_artifact(std::string_view bytes);

/// The same artifact gives the same bytes with one version of zlib, and the same digest with all.
std::string write_artifact(const RunArtifact& artifact);
std::string artifact_digest(const RunArtifact& artifact);

/// As the records of a run name its plan.
struct PlanDigests {
  std::string run;      // of the artifact
  std::string planned;  // of the one that it was made of; "": it is as planned
};
PlanDigests digests_of(const RunArtifact& artifact);

/// What an artifact holds of a strategy, each value by its place: "layout.zero_stage" is "3". All
/// of it, so that two are equal where these are.
std::map<std::string, std::string> fields_of(const PlannedStrategy& strategy);
/// Of what an artifact holds of a network.
std::string digest_of(const ModelGraph& model);

struct ReadArtifact {
  RunArtifact artifact;
  std::string digest;
  int version = kArtifactVersion;  // as which it was written; older ones are brought up to date
};
/// `file` names it in errors. Refused with the reason: what is no artifact, a version that this
/// reckon does not know, a cut or changed file, a field that is missing, unknown or out of range, a
/// network that is none. Never throws for what is in `bytes`.
Expected<ReadArtifact> read_artifact(std::string_view bytes, const std::string& file);
/// Others read an older version as it is brought up to date; a run is of exactly what was planned,
/// and of one job. nullopt: it can be run.
std::optional<Diagnostic> why_not_run(const ReadArtifact& read, const std::string& file);

}  // namespace reckon
