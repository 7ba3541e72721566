#pragma once
#include <filesystem>
#include <stdexcept>

#include "sim/accuracy/evidence/evidence.h"
#include "sim/accuracy/evidence/files.h"
#include "support/shipped_catalog.h"

namespace reckon::test {

/// The published runs of this source tree, read once a program.
inline const EvidenceFiles& shipped_evidence_files() {
  static const EvidenceFiles files = [] {
    EvidenceFiles read;
    const auto added = read.add_catalog(std::filesystem::path(RECKON_SOURCE_DIR) / "catalogs");
    if (!added) throw std::runtime_error(format(added.error()));
    return read;
  }();
  return files;
}

/// They, against the shipped catalog.
inline const Evidence& shipped_evidence() {
  static const Evidence evidence(shipped_evidence_files().runs(), shipped_catalog(),
                                 shipped_evidence_files().kernel().value());
  return evidence;
}

}  // namespace reckon::test
