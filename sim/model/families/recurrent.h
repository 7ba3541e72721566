#pragma once
#include "sim/model/families/rules.h"

// Recurrences over the steps of a sequence.
namespace reckon::family {

constexpr double kGateFlops = 4;  // sigmoid or tanh, and its part in the state

/// Forward: 2 gates hidden hidden a step, and 4 a gate's element. Reads its weights once: they stay
/// in the caches between its steps, which wait for each other (LayerCount::steps). Keeps the cell's
/// state of each step, beside the gates (the input) and the outputs.
template <>
struct Rules<Recurrence> : OneInput, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "Recurrence";
  static LayerOp read(A& a) { return Recurrence{a.main_number(), a.number("gates", 4)}; }
  static constexpr Kind kind{{"recurrence", "{recurrence: 1024, gates: 4}"}, read};

  static Checked check(const Recurrence& r) {
    if (auto e = check_sizes({{"hidden", r.hidden}})) return e;
    if (r.gates == 1 || r.gates == 3 || r.gates == 4) return std::nullopt;
    return ShapeError{fmt::format("has {} gates", r.gates),
                      "4: LSTM, 3: GRU, 1: a plain recurrent layer"};
  }
  static Result shape(const Recurrence& r, Inputs in, const Shape&) {
    const Shape& s = *in[0];
    if (s.size() != 2 || s[1] != r.gates * r.hidden) {
      return not_taken(fmt::format("the gates of each step (T, {})", r.gates * r.hidden), s);
    }
    return Shape{s[0], r.hidden};
  }
  static LayerCount count(const Recurrence& r, Inputs in, const Shape& out, Where) {
    const double gates = d(r.gates) * d(r.hidden);
    LayerCount c =
        product(in, out, WorkKind::matmul, Flops{2 * gates * d(r.hidden) * rows(out)}, true);
    c.forward += Flops{kGateFlops * gates * rows(out)};
    c.backward += Flops{kGateFlops * gates * rows(out)};
    c.steps = out.front();
    c.saved_fixed = kStatistic * size(out);
    return c;
  }
  static LayerWeights weights(const Recurrence& r) {
    return {.weight = {r.gates * r.hidden, r.hidden}, .bias = {r.gates * r.hidden}};
  }
  static LayerSaved saved(const Recurrence&) {
    return {.inputs = LayerSaved::Inputs::always, .output = true};
  }
};

}  // namespace reckon::family
