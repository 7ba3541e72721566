#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/accuracy/own_row.h"
#include "sim/catalog/catalog.h"
#include "sim/measurement/calibration/catalog_parameter.h"

// A calibration overlay: numbers of the catalog as measurements correct them, and how that was
// found. A file of it (YAML) is an overlay on the catalog before plans are made, so that everything
// that follows rests on it and says so.
namespace reckon {

inline constexpr int kCalibrationVersion = 1;
inline constexpr std::size_t kLargestCalibration = std::size_t{16} << 20U;  // bytes of a file

/// One number, before and after.
struct Correction {
  std::string parameter;  // catalog_parameter.h
  std::string unit;
  ParameterValue catalog, calibrated;
  double standard_error = 0;      // of the calibrated value's logarithm, on its own
  std::vector<std::string> rows;  // which measurements it rests on: "mlp: step", most telling first
};

/// How a family of distributions explains waiting times; the best has the least `aic`.
struct FamilyFit {
  std::string family;           // "exponential", "weibull", "lognormal", "gamma"
  double scale = 0, shape = 1;  // scale: seconds; shape: no unit (waiting_times.h)
  double aic = 0, bic = 0;      // from the natural logarithm of the likelihood (waiting_times.h)
};
struct WaitingTimes {
  std::string what;  // "provisioning of gcp_gpu", "reclaim"
  int observed = 0, censored = 0;
  double mean = 0, p5 = 0, p50 = 0, p95 = 0;  // of the best family, seconds
  std::vector<FamilyFit> families;            // best first
};

/// One measured quantity that the fit was about.
struct CalibratedRow {
  std::string name;  // "mlp: step"
  std::string unit;
  // In `unit`; before and after: forecast with the catalog, with the overlay.
  double measured = 0, before = 0, after = 0;
  int values = 0;  // steps, saves, ... behind it
};

/// What a run measured of data whose size its scenario says itself: for that scenario to say.
struct OwnData {
  std::string name;           // of the run
  double samples = 0;         // as the scenario has it
  double bytes = 0;           // of a sample, as stored
  double decode_seconds = 0;  // of one vCPU, a sample; 0: not measured
};
/// "dataset: {samples: 400, bytes_per_sample: 5786B, decode: 1.2ms}", for the scenario's workload.
std::string to_text(const OwnData& data);

struct HeldOut {
  std::string how;  // "each of 3 configurations in turn", "the second half of the steps"
  int rows = 0;
  double error_before = 0, error_after = 0;  // mean of |ln(forecast / measured)|
  /// Worse by more than the rows' own noise can explain.
  bool worse = false;
};

struct Calibration {
  std::string name;                       // of its file
  std::string created;                    // 2026-11-21
  std::string catalog_digest;             // of the catalog that was corrected
  std::vector<std::string> measurements;  // files
  std::vector<Correction> corrections;
  /// Of the calibrated logarithms, corrections by corrections, row by row.
  std::vector<double> covariance;  // natural logarithms
  std::vector<WaitingTimes> waiting_times;
  std::vector<CalibratedRow> rows;
  /// Steps on accelerators that published runs tell of: no number of the catalog is corrected by
  /// them, they are evidence beside those (sim/accuracy/evidence/evidence.h).
  std::vector<OwnRow> own_runs;
  std::vector<OwnData> own_data;
  HeldOut held_out;
  std::vector<std::string> warnings;
};

/// One more correction that depends on no other.
void add_alone(Calibration& calibration, Correction correction);

/// As a YAML document with a comment on top that says what it is.
std::string to_yaml(const Calibration& calibration);
/// All errors at once: no YAML, unknown or missing keys, numbers that are none, another version.
Expected<Calibration> parse_calibration(std::string_view file, std::string_view text);

/// Corrects `catalog`, whose facts then name the overlay as their source. Errors: parameters that
/// this catalog does not have. What the overlay was fitted to and what it now lies over may differ:
/// then the catalog's `calibrations` line says so.
Diagnostics lay_over(Catalog& catalog, const Calibration& calibration);

}  // namespace reckon
