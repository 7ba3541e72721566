#pragma once
#include <cstdint>
#include <string>

// A number with its provenance. Every number of the catalogs and every default of a model is one of
// these.
namespace reckon {

/// Index into Catalog::sources; 0 is "given by the user in the scenario".
enum class SourceId : std::uint32_t { user = 0 };

/// `assumed` facts were not read anywhere (general knowledge, or a fit with residual spread): [low,
/// high] is then the range in which we believe the number lies (5th to 95th percentile), the
/// forecast treats it as uncertainty and lists its effect. For all others low == value == high.
template <class T>
struct Fact {
  T value{};
  T low{};
  T high{};
  SourceId source = SourceId::user;
  bool assumed = false;

  constexpr Fact() = default;
  constexpr explicit Fact(T v, SourceId s = SourceId::user)
      : value(v), low(v), high(v), source(s) {}
  constexpr Fact(T v, T lo, T hi, SourceId s)
      : value(v), low(lo), high(hi), source(s), assumed(true) {}
};

}  // namespace reckon
