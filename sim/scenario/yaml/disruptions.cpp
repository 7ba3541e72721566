#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

Form seconds_above_zero() { return duration_above_zero(); }

const Fields<ExponentialReclaim>& exponential_fields() {
  static const Fields<ExponentialReclaim> table{required(number_field(
      "mean", &ExponentialReclaim::mean, seconds_above_zero(), "Mean age of a node.", "8h"))};
  return table;
}

const Fields<WeibullReclaim>& weibull_fields() {
  using W = WeibullReclaim;
  static const Fields<W> table{
      required(number_field("shape", &W::shape, above_zero(Form::Kind::number, 100),
                            "Below 1: young nodes are taken first; 1: exponential.", "0.8")),
      required(number_field("scale", &W::scale, seconds_above_zero(), "63.2 % are taken by then.",
                            "9h"))};
  return table;
}

const Fields<BathtubReclaim>& bathtub_fields() {
  using B = BathtubReclaim;
  static const Fields<B> table{
      required(number_field("a", &B::a, fraction(true),
                            "A of F(t) = A (1 - exp(-t/tau1) + exp((t - b)/tau2)).", "0.45")),
      required(number_field("tau1", &B::tau1, seconds_above_zero(),
                            "Time constant of the early deaths.", "1h")),
      required(number_field("tau2", &B::tau2, seconds_above_zero(),
                            "Time constant of the late reclaims.", "0.8h")),
      required(number_field("b", &B::b, seconds_above_zero(),
                            "Age at which the late reclaims begin.", "24h")),
      required(number_field("limit", &B::limit, seconds_above_zero(), "Maximum lifetime of a node.",
                            "24h"))};
  return table;
}

const Fields<TraceReclaim::Generate>& generate_fields() {
  using G = TraceReclaim::Generate;
  static const Fields<G> table{
      required(number_field("mean", &G::mean, seconds_above_zero(),
                            "Mean age of a node, exponential.", "120h")),
      required(
          number_field("duration", &G::duration, seconds_above_zero(), "Of the trace.", "30d")),
      required(number_field("nodes", &G::nodes, whole(1, kMostNodes), "Node slots.", "100")),
      required(
          number_field("seed", &G::seed, whole(0, 0x1p53), "Of the trace's own randomness.", "7"))};
  return table;
}

const Fields<TraceReclaim>& trace_fields() {
  using T = TraceReclaim;
  static const Fields<T> table{
      text_field("file", &T::file, "A recorded trace, relative to this file.", "p3-trace.json"),
      number_field("gap", &T::gap, seconds_above_zero(),
                   "Sampling interval; default: the file's own.", "600s"),
      block_field<generate_fields>("generate", &T::generate, {},
                                   "A trace made from these parameters.",
                                   "{mean: 120h, duration: 30d, nodes: 100, seed: 7}")};
  return table;
}

void check_reclaim_trace(Reader& reader, const YamlNode& node, const TraceReclaim&) {
  constexpr std::array<std::string_view, 2> kOneOf{"file", "generate"};
  check_one_of(reader, node, kOneOf, 1);
  if (const auto* gap = node.find("gap"); gap != nullptr && node.has("generate"))
    reader.error(gap->key_at, "'gap' belongs to a trace from a file",
                 "a generated trace has exact times");
}

template <class T>
std::optional<ReclaimSpec> read_law(Reader& reader, const YamlNode& node, const Fields<T>& table) {
  YamlNode untagged = node;
  untagged.tag.clear();
  T law{};
  const std::size_t before = reader.errors();
  if (!read_fields(reader, untagged, table, law)) return std::nullopt;
  if constexpr (std::is_same_v<T, TraceReclaim>) check_reclaim_trace(reader, untagged, law);
  if (reader.errors() != before) return std::nullopt;
  return law;
}

constexpr std::string_view kLaws =
    "one of: !exponential {mean: 8h}\n"
    "        !weibull {shape: 0.8, scale: 9h}\n"
    "        !bathtub {a: 0.45, tau1: 1h, tau2: 0.8h, b: 24h, limit: 24h}\n"
    "        !trace {file: FILE} or !trace {generate: {mean: 120h, duration: 30d, nodes: 100, "
    "seed: 7}}\n"
    "        none";

std::optional<ReclaimSpec> read_reclaim(Reader& reader, const YamlNode& node) {
  if (node.tag.empty() && node.kind == YamlNode::Kind::scalar && node.text == "none")
    return NoReclaim{};
  if (node.tag == "!exponential") return read_law(reader, node, exponential_fields());
  if (node.tag == "!weibull") return read_law(reader, node, weibull_fields());
  if (node.tag == "!bathtub") return read_law(reader, node, bathtub_fields());
  if (node.tag == "!trace") return read_law(reader, node, trace_fields());
  const std::vector<std::string> tags{"!exponential", "!weibull", "!bathtub", "!trace"};
  if (!node.tag.empty())
    reader.error(fmt::format("unknown distribution '{}'{}", shortened(node.tag),
                             did_you_mean(node.tag, tags)),
                 std::string(kLaws));
  else
    reader.error(
        fmt::format("{} must be a distribution or none, not {}", reader.subject(), describe(node)),
        std::string(kLaws));
  return std::nullopt;
}

const Fields<MaintenanceSpec>& maintenance_fields() {
  using M = MaintenanceSpec;
  static const Fields<M> table{
      required(number_field("every", &M::every, seconds_above_zero(),
                            "Mean time between two events of one node.", "30d")),
      number_field("notice", &M::notice, duration_from_zero(),
                   "Warning before the host goes; default: 0s.", "60min"),
      boolean_field("grouped", &M::grouped,
                    "All nodes of a pool at the same time; default: as the provider does it.",
                    "true")};
  return table;
}

const Fields<ShortageSpec>& shortage_fields() {
  using S = ShortageSpec;
  // Capacity that comes and goes within a second is a unit mistaken, and endless work.
  const Form from_a_second{Form::Kind::duration, 1, kLongestTime};
  static const Fields<S> table{
      required(number_field("every", &S::every, from_a_second,
                            "Mean time from the end of one to the begin of the next.", "20h")),
      required(
          number_field("lasts", &S::lasts, from_a_second, "Mean time that one lasts.", "40min"))};
  return table;
}

const Fields<FailuresSpec>& failures_fields() {
  using F = FailuresSpec;
  static const Fields<F> table{
      required(number_field(
          "mtbf_per_accelerator", &F::mtbf_per_accelerator,
          above_zero(Form::Kind::duration, 100 * kLongestTime),
          "Mean time between failures of one accelerator and its share of the node.", "50000h")),
      number_field("hang_share", &F::hang_share, fraction(),
                   "Failures in which no process ends and the job hangs; default: the catalog's.",
                   "5%"),
      number_field("hang_detection", &F::hang_detection, duration_from_zero(),
                   "Time until a hang is found out; default: the catalog's.", "10min"),
      number_field("process_share", &F::process_share, fraction(),
                   "Failures that end a process and leave its node; default: none, each takes the "
                   "node.",
                   "13%")};
  return table;
}

const Form& share_form() {
  static const Form form{Form::Kind::fraction, 0, 0.9};
  return form;
}

bool is_none(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar && node.tag.empty() && node.text == "none";
}

}  // namespace

const Fields<DisruptionsSpec>& disruptions_fields() {
  using D = DisruptionsSpec;
  Form maintenance = choice("a map, or none");
  maintenance.words = {"none"};
  Form failures = maintenance, shortage = maintenance;
  Form preemption = choice("!exponential, !weibull, !bathtub, !trace, or none");
  preemption.words = {"none"};
  preemption.tagged = {{"!exponential", &infos_of<exponential_fields>},
                       {"!weibull", &infos_of<weibull_fields>},
                       {"!bathtub", &infos_of<bathtub_fields>},
                       {"!trace", &infos_of<trace_fields>}};
  maintenance.fields = &infos_of<maintenance_fields>;
  failures.fields = &infos_of<failures_fields>;
  shortage.fields = &infos_of<shortage_fields>;
  static const Fields<D> table{
      field<D>(
          "preemption", preemption,
          [](Reader& r, const YamlNode& n, D& d) { d.preemption = read_reclaim(r, n); },
          "When the provider takes spot nodes back.", "!exponential {mean: 8h}"),
      field<D>(
          "shortage", shortage,
          [](Reader& r, const YamlNode& n, D& d) {
            ShortageSpec value;
            if (is_none(n))
              d.shortage_off = true;
            else if (read_fields(r, n, shortage_fields(), value))
              d.shortage = value;
          },
          "When spot nodes cannot be had; none: they always can. Default: the catalog's.",
          "{every: 20h, lasts: 40min}"),
      field<D>(
          "drift", Form{.kind = Form::Kind::list, .item = Form::Kind::duration},
          [](Reader& r, const YamlNode& n, D& d) {
            r.each(n, [&](const YamlNode& item) {
              if (const auto at = r.number(item, duration_from_zero()))
                d.drift.push_back(Seconds{*at});
            });
          },
          "Where Karpenter makes the nodes of a shared cluster: when all that are there are "
          "drifted, as by a new image. Default: never.",
          "[7d, 21d]"),
      field<D>(
          "maintenance", maintenance,
          [](Reader& r, const YamlNode& n, D& d) {
            MaintenanceSpec value;
            if (is_none(n))
              d.maintenance_off = true;
            else if (read_fields(r, n, maintenance_fields(), value))
              d.maintenance = value;
          },
          "Host maintenance; none: no such events.", "{every: 30d, notice: 60min}"),
      field<D>(
          "failures", failures,
          [](Reader& r, const YamlNode& n, D& d) {
            FailuresSpec value;
            if (is_none(n))
              d.failures_off = true;
            else if (read_fields(r, n, failures_fields(), value))
              d.failures = value;
          },
          "Hardware and software failures; none: no such events.",
          "{mtbf_per_accelerator: 50000h}"),
      field<D>(
          "stragglers",
          Form{.kind = Form::Kind::choice,
               .words = {"typical", "none"},
               .note = "a share of the step, typical, or none",
               .item = Form::Kind::fraction},
          [](Reader& r, const YamlNode& n, D& d) {
            if (is_none(n)) return;
            if (n.kind == YamlNode::Kind::scalar && n.text == "typical")
              d.stragglers = StragglersSpec{};
            else if (const auto share = r.number(n, share_form()))
              d.stragglers = StragglersSpec{*share};
          },
          "Share of the training's time in which all wait for slow nodes, beyond what measured "
          "step times contain; typical: the catalog's. Default: none.",
          "5%"),
  };
  return table;
}

}  // namespace reckon
