#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/catalog/catalog.h"
#include "sim/scenario/plan.h"

// Numbers of the catalog that measurements can correct, each with a name that stays what it is
// while the catalog grows:
//
//   operations/framework.step_jitter_fraction
//   links/ethernet/latency                     efficiency, latency
//   storages/gcs-standard/write_per_node       read_per_node, write_per_node, latency
//   datasets/imagenet/decode_cpu_seconds       decode_cpu_seconds, bytes_per_sample
//   efficiencies/Volta/fp16/any/matmul         convolution, matmul, attention, memory, half_size,
//                                              launch; "any" is the row for any stack
//   efficiencies/Volta/fp16/any/speed          all six at once, faster by a factor; 1 in the
//   catalog
namespace reckon {

/// SI units, fractions 0..1; low and high: 5th and 95th percentile. Equal: the number is certain.
struct ParameterValue {
  double value = 0, low = 0, high = 0;  // in the parameter's unit
  bool uncertain() const { return low < high; }
};

/// A place in one Catalog, good as long as its rows are.
class CatalogParameter {
 public:
  const std::string& name() const { return name_; }
  const std::string& unit() const { return unit_; }  // "s", "B/s", "FLOP/s", "fraction", ...
  ParameterValue get() const { return get_(); }
  void set(const ParameterValue& value, SourceId source) { set_(value, source); }
  /// The largest value that makes sense: 1 for shares of something.
  double most() const { return most_; }

 private:
  friend class ParameterFinder;
  std::string name_, unit_;
  double most_ = 0;  // in `unit_`
  std::function<ParameterValue()> get_;
  std::function<void(const ParameterValue&, SourceId)> set_;
};

/// The parameter of that name; the error says what is not known, with a suggestion.
Expected<CatalogParameter> find_parameter(Catalog& catalog, std::string_view name);

/// Names of all that a plan of this catalog may rest on, in a fixed order: whether a forecast
/// really changes with one is for the caller to try.
std::vector<std::string> parameters_of(const Plan& plan, const Catalog& catalog);

}  // namespace reckon
