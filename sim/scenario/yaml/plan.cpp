#include <algorithm>
#include <set>

#include "sim/base/unit_text.h"
#include "sim/scenario/restart.h"
#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

struct Vary {
  std::map<std::string, std::vector<std::string>> values;
};

/// "3" or "1..64".
void check_range(Reader& reader, const YamlNode& node, double least) {
  const std::size_t dots = node.text.find("..");
  const auto low = parse_integer(std::string_view(node.text).substr(0, dots));
  const auto high =
      dots == std::string::npos ? low : parse_integer(std::string_view(node.text).substr(dots + 2));
  if (!low || !high)
    reader.error(fmt::format("{}: {} is no number or range such as 1..64", reader.subject(),
                             describe(node)));
  else if (double(*low) < least || double(*high) > kMostNodes)
    reader.error(fmt::format("{}: {} is outside {}..{:.0e}", reader.subject(), describe(node),
                             least, kMostNodes));
  else if (*low > *high)
    reader.error(fmt::format("{}: the range {} is empty", reader.subject(), describe(node)));
}

/// "optimal", "none" or a duration.
void check_interval(Reader& reader, const YamlNode& node) {
  if (node.text != "optimal" && node.text != "none") reader.number(node, duration_above_zero());
}

/// "full", "in_place", "warm_spare 2", "elastic 12".
void check_restart_kind(Reader& reader, const YamlNode& node) {
  if (!parse_restart(node.text))
    reader.error(fmt::format("{}: {} is no way to restart", reader.subject(), describe(node)),
                 "full, in_place, warm_spare (with a number of nodes), elastic (with the fewest)\n"
                 "example: restart: [full, warm_spare 1, elastic]");
}

/// "25% on_demand": a share of the nodes and how they are bought.
void check_base(Reader& reader, const YamlNode& node) {
  const std::size_t space = node.text.find(' ');
  const auto share = parse_fraction(std::string_view(node.text).substr(0, space));
  const std::string bought = space == std::string::npos ? "" : node.text.substr(space + 1);
  if (!share || *share <= 0 || *share >= 1 || (bought != "on_demand" && bought != "reserved"))
    reader.error(fmt::format("{}: {} is no share of the nodes with how they are bought",
                             reader.subject(), describe(node)),
                 "write a share between 0 and 1, and on_demand or reserved\nexample: base: [25% "
                 "on_demand, 50% reserved]");
}

void check_patience(Reader& reader, const YamlNode& node) {
  reader.number(node, duration_above_zero());
}

/// "90%"; no fraction without the sign.
std::optional<double> parse_percent(std::string_view text) {
  const auto value = text.ends_with('%') ? parse_fraction(text) : Parsed<double>(-1.0);
  return value && *value >= 0 ? std::optional<double>(*value) : std::nullopt;
}

/// "fixed", "125%", or the least and the most nodes of an autoscaled pool as shares of the job's:
/// "0..100%", "100%..150%".
void check_bounds(Reader& reader, const YamlNode& node) {
  if (node.text == "fixed") return;
  const std::size_t dots = node.text.find("..");
  const auto share = [](std::string_view text) {
    return text == "0" ? std::optional<double>(0) : parse_percent(text);
  };
  const auto low = share(std::string_view(node.text).substr(0, dots));
  const auto high =
      dots == std::string::npos ? low : share(std::string_view(node.text).substr(dots + 2));
  constexpr double kMost = 10;  // times the gang's nodes
  if (!low || !high)
    reader.error(
        fmt::format("{}: {} is no range of a pool's nodes", reader.subject(), describe(node)),
        "write fixed, or shares of the job's nodes: 0..100% grows from nothing, 125% has "
        "spare nodes\nexample: autoscaling: [fixed, 0..100%, 125%]");
  else if (*low > *high || *high < 1 || *high > kMost)
    reader.error(
        fmt::format("{}: {} holds no job: a pool has 100% of the job's nodes at least, and "
                    "not more than 1000%",
                    reader.subject(), describe(node)),
        "example: autoscaling: [fixed, 0..100%, 125%]");
}

/// One value or a list of them; each is judged by `check` and kept as written.
template <class Check>
Field<Vary> vary_field(std::string_view key, Check check, std::vector<std::string> words,
                       std::string_view doc, std::string_view example) {
  const auto read = [key, check](Reader& r, const YamlNode& n, Vary& vary) {
    auto& values = vary.values[std::string(key)];
    const auto one = [&](const YamlNode& item) {
      if (!r.expect(item, YamlNode::Kind::scalar)) return;
      check(r, item);
      values.push_back(item.text);
    };
    if (n.kind == YamlNode::Kind::list) {
      r.each(n, one);
      if (n.entries.empty()) r.error(r.subject() + " is empty");
    } else {
      one(n);
    }
  };
  Form form = choice("one value or a list");
  form.words = std::move(words);
  if (form.words.empty()) form.item = Form::Kind::text;
  form.or_list = true;
  return field<Vary>(key, form, read, doc, example);
}

const Fields<Vary>& vary_fields() {
  const auto words_field = [](std::string_view key, std::vector<std::string> words,
                              std::string_view doc, std::string_view example) {
    const auto check = [words](Reader& r, const YamlNode& n) { r.word(n, words); };
    return vary_field(key, check, words, doc, example);
  };
  const auto text = [](Reader& r, const YamlNode& n) { r.text(n); };
  const auto range = [](double least) {
    return [least](Reader& r, const YamlNode& n) { check_range(r, n, least); };
  };
  std::vector<std::string> recompute = texts_of<Recompute>();
  recompute.emplace_back("any");
  std::vector<std::string> strategies = texts_of<StrategyKind>();
  strategies.emplace_back("any");
  static const Fields<Vary> table{
      vary_field("provider", text, {}, "Providers to consider.", "[gcp, aws]"),
      vary_field("accelerator", text, {}, "Accelerators to consider.",
                 "[A100-SXM4-80, H100-SXM5-80]"),
      vary_field("region", text, {}, "Regions to consider.", "[us-central1, us-east1]"),
      vary_field("zone", text, {}, "Zones to consider; any: all that the catalog knows.",
                 "[us-central1-a, us-central1-c]"),
      vary_field("machine", text, {}, "Machines to consider.", "[a2-highgpu-8g, a3-highgpu-8g]"),
      vary_field("nodes", range(1), {}, "Numbers of nodes.", "1..64"),
      words_field("pricing", texts_of<CapacityType>(), "Capacity types to consider.",
                  "[spot, on_demand]"),
      vary_field("base", check_base, {},
                 "Mixes with spot: shares of a job's nodes that are not spot.",
                 "[25% on_demand, 50% reserved]"),
      vary_field("fallback", check_patience, {},
                 "On-demand nodes replace spot nodes that do not come within this time.",
                 "[10min, 30min]"),
      vary_field("autoscaling", check_bounds, {},
                 "Bounds of the workers' pool, as shares of the job's nodes; 125%: spare nodes.",
                 "[fixed, 0..100%, 125%]"),
      vary_field("parameter_server_machine", text, {}, "Machines of the parameter servers.",
                 "[n1-highmem-8, n1-standard-16]"),
      vary_field("parameter_servers", range(0), {}, "Numbers of parameter servers.", "0..16"),
      words_field("strategy", strategies, "Kinds of strategy to consider.",
                  "[multi_worker_mirrored, sharded]"),
      words_field("precision", {"any"},
                  "any: each accelerator's own for training, where the workload says none.", "any"),
      vary_field(
          "global_batch", range(1), {},
          "Most samples of a step; the batch of an accelerator is then the largest that fits.",
          "1..1024"),
      vary_field("checkpoint_interval", check_interval, {},
                 "Work between two checkpoints: durations, optimal, none.", "[optimal, 30min]"),
      vary_field("checkpoint_storage", text, {},
                 "Storages for checkpoints to consider, of the catalog.",
                 "[gcs-standard, local-ssd]"),
      vary_field("restart", check_restart_kind, {},
                 "Ways to go on after a loss: full, in_place, warm_spare with its spare nodes, "
                 "elastic with its fewest nodes.",
                 "[full, warm_spare 1, elastic]"),
      words_field("recompute", recompute, "Recomputation to consider.", "any"),
      words_field("layout", {"any"}, "Splits over data, tensor, pipeline, context and expert.",
                  "any"),
  };
  return table;
}

/// "VALUE" or "VALUE@95%": the value, if the probability is one.
std::optional<std::string> limit_value(Reader& reader, const YamlNode& node, std::string& written) {
  const auto text = reader.text(node);
  if (!text) return std::nullopt;
  const std::size_t at = text->find('@');
  if (at != std::string::npos) {
    const auto probability = parse_fraction(shortened(std::string_view(*text).substr(at + 1)));
    if (!probability || *probability <= 0 || *probability >= 1) {
      reader.error(fmt::format("{}: '{}' is no probability between 0 and 1", reader.subject(),
                               shortened(std::string_view(*text).substr(at + 1))));
      return std::nullopt;
    }
  }
  written = *text;
  return text->substr(0, at);
}

void check_duration(Reader& reader, const YamlNode& node, const std::string& text) {
  YamlNode duration = node;
  duration.text = text;
  reader.number(duration, duration_above_zero());
}

void read_deadline(Reader& reader, const YamlNode& node, PlanSpec& plan) {
  const auto value = limit_value(reader, node, plan.deadline);
  if (value && !parse_utc_time(*value)) check_duration(reader, node, *value);
}

void read_deadlines(Reader& reader, const YamlNode& node, PlanSpec& plan) {
  reader.each_entry(node, [&](const std::string& job, const YamlNode& value) {
    std::string written;
    const auto limit = limit_value(reader, value, written);
    if (!limit) return;
    check_duration(reader, value, *limit);
    plan.deadlines[job] = written;
  });
}

void read_budget(Reader& reader, const YamlNode& node, PlanSpec& plan) {
  const auto value = limit_value(reader, node, plan.budget);
  if (!value) return;
  const auto money = parse_money(shortened(*value));
  if (!money)
    reader.error(fmt::format("{}: {}", reader.subject(), money.error()));
  else if (money->amount <= 0 || money->amount > 1e12)
    reader.error(fmt::format("{} is {}, but must be above 0 and at most 1e12", reader.subject(),
                             shortened(*value)));
}

/// "provider/region/accelerator", with or without how they are bought.
bool is_quota_place(std::string_view key) {
  const auto slashes = std::ranges::count(key, '/');
  if (slashes == 2) return true;
  const std::string_view bought = key.substr(key.rfind('/') + 1);
  return slashes == 3 && from_text<CapacityType>(bought).has_value();
}

void read_quota(Reader& reader, const YamlNode& node, PlanSpec& plan) {
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    if (!is_quota_place(key))
      reader.error(
          fmt::format("'{}' is no place of a quota", shortened(key)),
          "write provider/region/accelerator, and behind it /spot, /on_demand or /reserved "
          "for those alone that are bought so\n"
          "example: quota: {gcp/us-central1/H100-SXM5-80: 128}");
    else if (const auto n = reader.number(value, whole(0, kMostNodes)))
      plan.quota[key] = static_cast<int>(*n);
  });
}

/// "70GiB" or "90%".
void read_memory(Reader& reader, const YamlNode& node, PlanSpec& plan) {
  const auto text = reader.text(node);
  if (!text) return;
  const auto share = parse_percent(*text);
  const auto bytes = parse_bytes(*text);
  if (share ? *share > 0 && *share <= 1 : bytes && bytes->v > 0)
    plan.memory = *text;
  else
    reader.error(fmt::format("{}: {} is no amount of memory, nor a share of 0 to 100%",
                             reader.subject(), describe(node)),
                 "example: memory: 70GiB, or 90%");
}

/// An amount above nothing.
void read_most(Reader& reader, const YamlNode& node, Parsed<double> (*parse)(std::string_view),
               std::optional<double>& most) {
  const auto text = reader.text(node);
  if (!text) return;
  const Parsed<double> amount = parse(*text);
  if (!amount)
    reader.error(fmt::format("{}: {}", reader.subject(), amount.error()));
  else if (*amount <= 0)
    reader.error(fmt::format("{} must be more than nothing", reader.subject()), reader.example());
  else
    most = *amount;
}

/// Everything below a node as "path -> text": kept, not understood.
void flatten(Reader& reader, const YamlNode& node, const std::string& path,
             std::map<std::string, std::string>& out) {
  if (node.kind == YamlNode::Kind::scalar) out[path] = node.text;
  if (node.kind == YamlNode::Kind::null) out[path] = "null";
  std::set<std::string_view> keys;
  for (std::size_t i = 0; i < node.entries.size() && !reader.full(); ++i) {
    const auto& entry = node.entries[i];
    const bool is_map = node.kind == YamlNode::Kind::map;
    const std::string key = is_map ? entry.key : std::to_string(i);
    if (is_map && !keys.insert(entry.key).second) reader.report_duplicate(node, entry);
    flatten(reader, entry.value, path.empty() ? key : path + "." + key, out);
  }
}

}  // namespace

const Fields<PlanSpec>& plan_fields() {
  using P = PlanSpec;
  const auto vary = [](Reader& r, const YamlNode& n, P& p) {
    Vary value;
    if (read_fields(r, n, vary_fields(), value)) p.vary.merge(value.values);
  };
  const auto objective = [](Reader& r, const YamlNode& n, P& p) {
    const std::vector<std::string> texts = texts_of<Objective>();
    if (const auto i = r.word(n, texts)) p.objective = from_text<Objective>(texts[*i]);
  };
  static const Fields<P> table{
      field<P>("vary", Form{.kind = Form::Kind::block, .fields = &infos_of<vary_fields>}, vary,
               "What the planner may change.", "{nodes: 1..64, pricing: [spot, on_demand]}"),
      field<P>("deadline", Form{Form::Kind::text}, read_deadline,
               "A duration or a UTC time, with its probability.", "72h@95%"),
      field<P>("budget", Form{Form::Kind::text}, read_budget, "An amount, with its probability.",
               "20000 USD@90%"),
      field<P>("quota", Form{.kind = Form::Kind::map, .item = Form::Kind::whole}, read_quota,
               "Accelerators that may be used, by place.", "{gcp/us-central1/H100-SXM5-80: 128}"),
      field<P>(
          "residency", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, P& p) { p.residency = r.texts(n); },
          "Countries (ISO 3166) or EU: the region must be in one of them.", "[EU, CH]"),
      number_field("carbon_free", &P::carbon_free, fraction(),
                   "Least share of the region's power that is free of carbon.", "80%"),
      field<P>(
          "energy", Form{Form::Kind::text},
          [](Reader& r, const YamlNode& n, P& p) {
            read_most(r, n, parse_energy, p.energy_joules);
          },
          "Of the run at most, the data centre's part included.", "500kWh"),
      field<P>(
          "co2", Form{Form::Kind::text},
          [](Reader& r, const YamlNode& n, P& p) { read_most(r, n, parse_mass, p.co2_grams); },
          "Emissions of the run's power at most.", "2t"),
      field<P>("memory", Form{Form::Kind::text}, read_memory,
               "Of an accelerator that may be used at most: an amount, or a share of what it has.",
               "90%"),
      number_field("max_nodes", &P::max_nodes, whole(1, kMostNodes),
                   "Node limit, including parameter servers and fallback nodes.", "16"),
      number_field("period", &P::period, Form{Form::Kind::duration, 60, kLongestTime},
                   "Of several jobs: all are done within it, and reserved nodes are paid for it.",
                   "7d"),
      field<P>("deadlines", Form{.kind = Form::Kind::map, .item = Form::Kind::text}, read_deadlines,
               "Of several jobs: by when after its submit each is done.", "{nightly: 8h@95%}"),
      field<P>("objective", Form{.kind = Form::Kind::word, .words = texts_of<Objective>()},
               objective, "What is best.", "cost"),
  };
  return table;
}

const Fields<PlannedSpec>& planned_fields() {
  using P = PlannedSpec;
  static const Fields<P> table{
      required(
          number_field("schema_version", &P::schema_version, whole(1, 1), "Of this block.", "1")),
      required(text_field("reckon_version", &P::reckon_version, "Which made the plan.", "0.1.0")),
      required(text_field("catalog_digest", &P::catalog_digest, "Of the catalogs that were used.",
                          "93ce1f0a5b7d2468")),
      field<P>(
          "prices_as_of", Form{Form::Kind::date},
          [](Reader& r, const YamlNode& n, P& p) { p.prices_as_of = r.date(n).value_or(""); },
          "Oldest price used.", "2026-08-20"),
      field<P>(
          "calibrations", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, P& p) { p.calibrations = r.texts(n); },
          "Overlays that were used.", "[]"),
      number_field("seed", &P::seed, whole(0, 0x1p53), "Root of randomness.", "1"),
      field<P>(
          "forecast", Form{Form::Kind::map},
          [](Reader& r, const YamlNode& n, P& p) {
            if (r.expect(n, YamlNode::Kind::map)) flatten(r, n, "", p.forecast);
          },
          "What was forecast.", "{time_seconds: {p50: 120000}}"),
  };
  return table;
}

}  // namespace reckon
